"""The report of a campaign, and the file `findings.json` that `compare` reads."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from loadtests.recording.outcome import NOT_SENT
from loadtests.reporting import noise, runs, summaries
from loadtests.reporting.figures import ratio
from loadtests.reporting.report import Report, write_csv
from loadtests.reporting.result import Findings, Table

FILE, FORMAT = "findings.json", 2
# The figures of requests, with the ends of their names.
MEASURED = {"rate": ": requests/s", "p50_ms": ", p50: ms", "p90_ms": ", p90: ms", "p95_ms": ", p95: ms"}
MEASURED |= {"p99_ms": ", p99: ms", "p999_ms": ", p99.9: ms", "max_ms": ", max: ms"}


def write(directory: Path, name: str, title: str, findings: Findings, facts: Table) -> Path:
    """Write the page, its Markdown, CSV files, pictures and `findings.json` into the directory.

    Returns the path of the page. `name` is the name of the campaign, `title` the title of the page, `facts` the
    table of `machine.facts`.
    """
    own = replace(findings, part=name, title="Findings")
    if len(findings.runs) > 1 or not all(run.detailed for run in findings.runs):
        own.tables = [*own.tables, runs.table_of(findings.runs)]
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
    """The content of `findings.json`.

    `figures` has the values of all repetitions, `failed` failed and all requests of each run, and `measured` rates and
    percentiles of each run and name of request with their values in blocks of time. Only detailed runs have blocks: campaigns
    with many short runs repeat them, which measures noise better.
    """
    judged = not findings.too_small
    failed: dict[str, tuple[int, int]] = {}
    measured: dict[str, dict[str, Any]] = {}
    for run in findings.runs:
        of = summaries.summary_of(run.recording)
        tried = of["requests"] + of["failures"].get(NOT_SENT, 0)
        failed[f"{run.label}, failed: %"] = sum(of["failures"].values()), tried
        for request, part in summaries.parts_of(run.recording):
            values = {"rate": ratio(len(part), of["seconds"]), **summaries.percentiles_of(part.milliseconds)}
            blocks = noise.blocks_of(part, of["seconds"]) if run.detailed else {}
            for key, end in MEASURED.items():
                measured[f"{run.label}, {request}{end}"] = {"value": values[key], "blocks": blocks.get(key, [])}
    return {
        "format": FORMAT,
        "campaign": name,
        "title": title,
        "facts": {what: str(value) for what, value in facts.rows},
        "question": findings.question,
        "summary": findings.summary,
        "passed": findings.passed,
        "targets": [{**asdict(one), "met": one.met if judged else None} for one in findings.targets],
        "loads": {run.label: run.settings for run in findings.runs},
        "figures": findings.figures,
        "failed": failed,
        "measured": measured,
    }
