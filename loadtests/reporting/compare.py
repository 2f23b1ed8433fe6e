"""Comparison of two reports: what changed beyond noise."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from loadtests.reporting import plots
from loadtests.reporting.campaign import FILE, FORMAT
from loadtests.reporting.changes import COLUMNS, UNCHANGED, UNKNOWN, VERDICTS, both, labelled, rows_of
from loadtests.reporting.report import Report
from loadtests.reporting.result import Result, Table

# If there are more figures, those that changed get a table of their own.
MOST_ROWS = 40
# Facts that differ between any two runs.
EXPECTED = ("date", "commit", "load average at the start", "recording")
# Warnings about a campaign that did not pass, by `passed` of its report.
UNSURE = {
    False: "did not pass: error responses are faster than lookups",
    None: "was too small for verdicts: differences mean little",
}
EXPLANATION = (
    "Figures with repetitions show the median and, in brackets, minimum and maximum. They changed if a rank test (Mann and "
    "Whitney, 5 %) says so or, with too few repetitions for the test, if the gap between the ranges is more than one and a half "
    "times the wider range. Percentiles and rates of a single run have an interval of 99 %, from resampling blocks of its time "
    "(bootstrap); it does not include other differences from one run to the next. A change of less than 3 % counts as none, "
    "except for shares. Shares of failed requests changed if chance alone would cause the difference in at most one run of a "
    "hundred."
)


class IncomparableError(Exception):
    """A report does not exist, cannot be read, or belongs to another campaign than the other report."""


def write(before: Path, after: Path, directory: Path | None = None) -> tuple[Path, str]:
    """Write `compare.html`, `compare.md` and the plot; returns the path of the page and the table as text.

    The default directory is that of the report `after`. Raises `IncomparableError`.
    """
    documents = [read(path) for path in (before, after)]
    report = report_of(*documents)
    home = after if after.is_dir() else after.parent
    tables = report.results[0].tables[:1]
    left = max(0, len(tables[0].rows) - MOST_ROWS) if tables else 0
    # With many figures, the terminal shows those that changed; the page has all of them.
    shown = [_text(table, MOST_ROWS) for table in tables] + ([f"… and {left} more on the page"] if left else [])
    text = "\n".join([*report.notes[:-1], *shown, report.headline])
    return report.write(directory or home), text


def read(path: Path) -> dict[str, Any]:
    """Read `findings.json`, by its path or that of its directory. Raises `IncomparableError`."""
    file = path / FILE if path.is_dir() else path
    try:
        document = json.loads(file.read_text())
    except OSError as error:
        raise IncomparableError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise IncomparableError(f"{file} is not JSON") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise IncomparableError(f"{file} was not written by this version of the report")
    return document


def report_of(before: dict[str, Any], after: dict[str, Any]) -> Report:
    """The report of the comparison. Raises `IncomparableError` if the campaigns are different."""
    if before["campaign"] != after["campaign"]:
        names = f"{before['campaign']} and {after['campaign']}"
        raise IncomparableError(f"reports of different campaigns cannot be compared: {names}")
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
        Table("Environment", ("", "A", "B"), facts),
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
    """Warnings about campaigns that failed or were not judged, and about unexpected differences."""
    warnings = [
        f"Warning: the campaign of {side} {UNSURE[document['passed']]}."
        for side, document in (("A", before), ("B", after))
        if document["passed"] is not True
    ]
    for name in _facts(before, after):
        pair = [document["facts"].get(name, "unknown") for document in (before, after)]
        if name not in EXPECTED and pair[0] != pair[1]:
            warnings.append(f"Warning: {name} is not the same: {pair[0]} and {pair[1]}.")
    one, other = labelled(before), labelled(after)
    for label in [label for label in one if label in other]:
        settings = one[label]["settings"], other[label]["settings"]
        changed = [
            f"{name} {settings[0].get(name, 'unknown')} and {settings[1].get(name, 'unknown')}"
            for name in both(*settings)
            if settings[0].get(name) != settings[1].get(name)
        ]
        warnings += [f"Warning: the load of {label} is not the same: {', '.join(changed)}."] if changed else []
    return warnings


def _text(table: Table, most: int) -> str:
    lines = [table.columns, *table.rows[:most]]
    widths = [max(len(line[place]) for line in lines) for place in range(len(table.columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
