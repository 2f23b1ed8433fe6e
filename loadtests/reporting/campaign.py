"""The report of a campaign, and the file `findings.json` that `compare` reads."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loadtests.recording.outcome import NOT_SENT
from loadtests.reporting import histograms, runs, summaries
from loadtests.reporting.findings import Findings, Run
from loadtests.reporting.report import Report, write_csv
from loadtests.reporting.result import Result, Table, Target

FILE, FORMAT = "findings.json", 1


def write(directory: Path, name: str, title: str, findings: Findings, facts: Table) -> Path:
    """Write the page, its Markdown, CSV files, pictures and `findings.json` into the directory.

    Returns the path of the page. `name` is the name of the campaign, `title` the title of the page, `facts` the
    table of `machine.facts`.
    """
    detailed = [run for run in findings.runs if run.detailed]
    report = Report(
        title, facts, [_findings(name, findings), *_numbered([runs.result_of(run) for run in detailed])],
        question=findings.question, headline=findings.summary, passed=findings.passed if findings.targets else None,
        too_small=findings.too_small,
    )  # fmt: skip
    path = report.write(directory)
    rows = [
        {"figure": figure, "repetition": number, "value": value}
        for figure, values in findings.figures.items()
        for number, value in enumerate(values, 1)
    ]
    write_csv(directory / "figures.csv", rows)
    (directory / FILE).write_text(json.dumps(document(name, title, findings, facts), default=float) + "\n")
    return path


def _findings(name: str, findings: Findings) -> Result:
    """The section with the findings of the campaign and a table of its runs."""
    result = Result(name, "Findings", notes=findings.notes, plots=findings.plots, raw=findings.raw)
    result.targets, result.tables = findings.targets, list(findings.tables)
    if len(findings.runs) > 1 or not all(run.detailed for run in findings.runs):
        result.tables.append(runs.table_of(findings.runs))
    return result


def _numbered(results: list[Result]) -> list[Result]:
    """Give the sections of runs unique file names, numbered if runs have the same label."""
    seen: dict[str, int] = {}
    for result in results:
        seen[result.part] = seen.get(result.part, 0) + 1
        result.part = f"run-{result.part}" + (f"-{seen[result.part]}" if seen[result.part] > 1 else "")
    return results


def document(name: str, title: str, findings: Findings, facts: Table) -> dict[str, Any]:
    """The content of `findings.json`: campaign, facts, figures, and percentiles by run and name of request."""
    return {
        "format": FORMAT,
        "campaign": name,
        "title": title,
        "facts": {what: str(value) for what, value in facts.rows},
        "question": findings.question,
        "summary": findings.summary,
        "passed": findings.passed,
        "targets": [_target(one, judged=not findings.too_small) for one in findings.targets],
        "figures": findings.figures,
        "runs": [_run(run) for run in findings.runs],
    }  # fmt: skip


def _target(target: Target, *, judged: bool) -> dict[str, Any]:
    return {**asdict(target), "met": target.met if judged else None}


def _run(run: Run) -> dict[str, Any]:
    """The entry of a run.

    Only detailed runs have blocks of time. Campaigns with many short runs repeat them, which measures noise better.
    """
    summary = summaries.of(run)
    parts = list(summaries.by_name(run.recording))
    if len(parts) > 1:
        parts.insert(0, ("all requests", run.recording.requests))
    if len(jobs := run.recording.jobs.where(run.recording.jobs.outcomes != NOT_SENT)):
        parts.insert(1, ("whole jobs", jobs))
    return {
        "label": run.label,
        "settings": run.settings,
        "summary": summary,
        "requests": {
            name: {
                "count": len(part),
                **summaries.percentiles_of(part.milliseconds),
                "blocks": histograms.blocks_of(part, summary["seconds"]) if run.detailed else [],
            }
            for name, part in parts
        },
    }
