"""Two reports side by side: what changed beyond noise."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from loadtests.reporting import plots
from loadtests.reporting.campaign import FILE, FORMAT
from loadtests.reporting.changes import COLUMNS, UNCHANGED, UNKNOWN, VERDICTS, both, labelled, rows_of
from loadtests.reporting.report import Report
from loadtests.reporting.result import Result, Table

# Of more figures those that changed get a table of their own.
MOST_ROWS = 40
# What differs between any two runs.
EXPECTED = ("date", "commit", "load average at the start", "recording")
# Of a campaign that did not pass, by what its report says.
UNSURE = {
    False: "did not pass: errors are answered faster than lookups",
    None: "was too small for verdicts: differences mean little",
}
EXPLANATION = (
    "Figures with repetitions show the median and, in brackets, the least and the most; they changed if a rank test (Mann and "
    "Whitney, 5 %) says so or, where repetitions are too few for that, if their ranges lie apart by half as much again as either "
    "is wide. "
    "Percentiles and rates of a single run have an interval of 99 % from drawing blocks of its time again and again (bootstrap); "
    "what one run differs from the next for other reasons is not in it. A change of less than 3 % counts as none, "
    "except of shares. Shares of failed requests changed if chance alone would make as much of one run in a hundred at most."
)


class IncomparableError(Exception):
    """A report is not there, cannot be read, or answers another question than the other one."""


def write(before: Path, after: Path, directory: Path | None = None) -> tuple[Path, str]:
    """Write `compare.html`, `compare.md` and the plot into a directory, by default that of the latter report; returns the path of
    the page and the table as text. Raises `IncomparableError`."""
    documents = [read(path) for path in (before, after)]
    report = report_of(*documents)
    home = after if after.is_dir() else after.parent
    tables = report.results[0].tables[:1]
    left = max(0, len(tables[0].rows) - MOST_ROWS) if tables else 0
    # Whoever compares many figures looks for those that changed; the page has them all.
    shown = [_text(table, MOST_ROWS) for table in tables] + ([f"… and {left} more in the page"] if left else [])
    text = "\n".join([*report.notes[:-1], *shown, report.headline])
    return report.write(directory or home), text


def read(path: Path) -> dict[str, Any]:
    """What a campaign left. Raises `IncomparableError`."""
    file = path / FILE if path.is_dir() else path
    try:
        document = json.loads(file.read_text())
    except OSError as error:
        raise IncomparableError(f"{file} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise IncomparableError(f"{file} is no JSON") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise IncomparableError(f"{file} was not written by this version of the report")
    return document


def report_of(before: dict[str, Any], after: dict[str, Any]) -> Report:
    """The page. Raises `IncomparableError` where the campaigns are different ones."""
    if before["campaign"] != after["campaign"]:
        raise IncomparableError(f"different campaigns can't be compared: {before['campaign']} and {after['campaign']}")
    rows = rows_of(before, after)
    counts = Counter(row.verdict for row in rows)
    changed = [row.cells for row in rows if row.verdict not in (UNCHANGED, UNKNOWN)]
    whole = Table("All figures", COLUMNS, [row.cells for row in rows])
    short = [Table("What changed", COLUMNS, changed)] if changed and len(rows) > MOST_ROWS else []
    result = Result("compare", "What changed", tables=[*short, whole] if rows else [])
    drawn = {row.name: row for row in rows if row.change and row.change.ratio and row.change.low}
    if drawn:
        values = {name: (one.change.ratio, one.change.low, one.change.high, one.verdict) for name, one in drawn.items()}
        result.plots = [plots.ratios("B / A, with intervals", values, x="B / A", unchanged=(UNCHANGED, UNKNOWN))]
    facts = [
        (name, *(document["facts"].get(name, "–") for document in (before, after))) for name in _facts(before, after)
    ]
    return Report(
        f"Comparison: {after['title']}",
        Table("What the figures belong to", ("", "A", "B"), facts),
        [result],
        [*_differences(before, after), EXPLANATION],
        question="What changed from A to B beyond noise?",
        headline=", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        or "nothing to compare",
        name="compare",
    )


def _facts(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return both(before["facts"], after["facts"])


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Warnings: campaigns that failed or were not judged, and whatever is not the same besides what is meant to be compared."""
    told = [
        f"Warning: the campaign of {side} {UNSURE[document['passed']]}."
        for side, document in (("A", before), ("B", after))
        if document["passed"] is not True
    ]
    for name in _facts(before, after):
        pair = [document["facts"].get(name, "unknown") for document in (before, after)]
        if name not in EXPECTED and pair[0] != pair[1]:
            told.append(f"Warning: {name} is not the same: {pair[0]} and {pair[1]}.")
    one, other = labelled(before), labelled(after)
    for label in [label for label in one if label in other]:
        settings = one[label]["settings"], other[label]["settings"]
        changed = [
            f"{name} {settings[0].get(name, 'unknown')} and {settings[1].get(name, 'unknown')}"
            for name in both(*settings)
            if settings[0].get(name) != settings[1].get(name)
        ]
        told += [f"Warning: the load of {label} is not the same: {', '.join(changed)}."] if changed else []
    return told


def _text(table: Table, most: int) -> str:
    lines = [table.columns, *table.rows[:most]]
    widths = [max(len(line[place]) for line in lines) for place in range(len(table.columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
