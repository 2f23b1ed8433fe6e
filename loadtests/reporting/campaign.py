"""The report of a campaign, and the file `findings.json` that `compare` reads."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loadtests.reporting import noise, runs, summaries
from loadtests.reporting.figures import ratio
from loadtests.reporting.report import Report, write_csv
from loadtests.reporting.result import Findings, Result, Run, Table

FILE, FORMAT = "findings.json", 2


def write(directory: Path, name: str, title: str, findings: Findings, facts: Table) -> Path:
    """Write the page, its Markdown, CSV files, pictures and `findings.json` into the directory.

    Returns the path of the page. `name` is the name of the campaign, `title` the title of the page, `facts` the
    table of `machine.facts`.
    """
    own = Result(name, "Findings", notes=findings.notes, plots=findings.plots, raw=findings.raw)
    own.targets, own.tables = findings.targets, list(findings.tables)
    if len(findings.runs) > 1 or not all(run.detailed for run in findings.runs):
        own.tables.append(runs.table_of(findings.runs))
    results = [own, *(runs.result_of(run) for run in findings.runs if run.detailed)]
    texts = {"question": findings.question, "headline": findings.summary, "too_small": findings.too_small}
    passed = findings.passed if findings.targets else None
    path = Report(title, facts, results, passed=passed, **texts).write(directory)
    rows = [
        {"figure": figure, "repetition": number, "value": value}
        for figure, values in findings.figures.items()
        for number, value in enumerate(values, 1)
    ]
    write_csv(directory / "figures.csv", rows)
    (directory / FILE).write_text(json.dumps(document(name, title, findings, facts), default=float) + "\n")
    return path


def document(name: str, title: str, findings: Findings, facts: Table) -> dict[str, Any]:
    """The content of `findings.json`: campaign, facts, figures, and percentiles by run and name of request."""
    judged = not findings.too_small
    return {
        "format": FORMAT,
        "campaign": name,
        "title": title,
        "facts": {what: str(value) for what, value in facts.rows},
        "question": findings.question,
        "summary": findings.summary,
        "passed": findings.passed,
        "targets": [{**asdict(one), "met": one.met if judged else None} for one in findings.targets],
        "figures": findings.figures,
        "runs": [_run(run) for run in findings.runs],
    }


def _run(run: Run) -> dict[str, Any]:
    """The entry of a run.

    Only detailed runs have blocks of time. Campaigns with many short runs repeat them, which measures noise better.
    """
    summary = summaries.summary_of(run.recording)
    requests = {
        name: {
            "rate": ratio(len(part), summary["seconds"]),
            **summaries.percentiles_of(part.milliseconds),
            "blocks": noise.blocks_of(part, summary["seconds"]) if run.detailed else {},
        }
        for name, part in summaries.parts_of(run.recording)
    }
    return {"label": run.label, "settings": run.settings, "summary": summary, "requests": requests}
