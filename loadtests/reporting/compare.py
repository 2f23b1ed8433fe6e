"""Comparison of two reports: what changed beyond noise."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from loadtests.reporting import noise, plots
from loadtests.reporting.campaign import FILE, FORMAT
from loadtests.reporting.figures import Spread, number, ratio
from loadtests.reporting.noise import Change
from loadtests.reporting.report import Report, markdown_table, notes
from loadtests.reporting.result import Result, Table

UNCHANGED, UNKNOWN = "no change beyond noise", "too few values to tell"
ONLY_BEFORE, ONLY_AFTER = "only in A", "only in B"
CHANGES = "What changed"
COLUMNS = ("figure", "A", "B", "B / A", "interval", "verdict")
# Units of time: a smaller value is faster.
TIMES = ("ms", "s", "seconds", "min")
# More rows would not fit on the plot.
MOST_ROWS = 50
# Facts that differ between any two runs.
EXPECTED = ("date", "commit", "load average at the start", "recording")


class IncomparableError(Exception):
    """A report does not exist, cannot be read, or belongs to another campaign than the other report."""


class Row(NamedTuple):
    """A figure of both reports, as text, and its change; `change` has no ratio if only one report has the figure."""

    name: str
    before: str
    after: str
    change: Change
    verdict: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of the row, in the order of `COLUMNS`."""
        ratio, low, high, _ = self.change
        interval = "–" if low is None else f"{low:.3f}–{high:.3f}"
        return self.name, self.before, self.after, "–" if ratio is None else f"{ratio:.3f}", interval, self.verdict


def write(before: Path, after: Path, directory: Path | None = None) -> tuple[Path, str]:
    """Write `compare.html`, `compare.md` and the plot; returns the path of the page and the changes as text.

    The default directory is that of the report `after`. Raises `IncomparableError`.
    """
    report = report_of(read(before), read(after))
    home = after if after.is_dir() else after.parent
    changes = [markdown_table(table) for table in report.results[0].tables if table.title == CHANGES]
    return report.write(directory or home), "\n".join([*report.notes[:-1], *changes, report.headline])


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
    tables = [Table(CHANGES, COLUMNS, changed), Table("All figures", COLUMNS, [row.cells for row in rows])]
    result = Result("compare", "Figures", tables=[table for table in tables if table.rows])
    drawn = [row for row in rows if row.change.real and row.change.low][:MOST_ROWS]
    if drawn:
        spreads = {f"{row.name} ({row.verdict})": Spread(*row.change[:3]) for row in drawn}
        result.plots = [plots.bars("B / A, with intervals", spreads, x="B / A", log_x=True)]
    facts = [(name, one or "–", other or "–") for name, one, other in _pairs(before["facts"], after["facts"])]
    return Report(
        f"Comparison: {after['title']}",
        Table("Environment", ("", "A", "B"), facts),
        [result],
        [*_differences(before, after), *notes("compare")],
        question="What changed from A to B beyond noise?",
        headline=", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "nothing to compare",
        name="compare",
    )


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Warnings about campaigns that failed or were not judged, and about unexpected differences."""
    sides = {"A": before["passed"], "B": after["passed"]}
    facts = [pair for pair in _pairs(before["facts"], after["facts"]) if pair[0] not in EXPECTED]
    loads = {
        label: _pairs(one, other) for label, one, other in _pairs(before["loads"], after["loads"]) if one and other
    }
    return notes("differences", sides=sides, facts=facts, loads=loads)


def rows_of(before: dict[str, Any], after: dict[str, Any]) -> list[Row]:
    """The rows of the figures of the campaign, then those of its runs."""
    rows = []
    for kind, compared in (("figures", _repetitions), ("failed", _shares), ("measured", _blocks)):
        for name, one, other in _pairs(before[kind], after[kind]):
            if one and other:
                *cells, change = compared(name, one, other)
                rows.append(Row(name, *cells, change, _verdict(name, change)))
            elif one:
                rows.append(Row(name, "there", "–", Change(None), ONLY_BEFORE))
            elif other:
                rows.append(Row(name, "–", "there", Change(None), ONLY_AFTER))
    return rows


def _repetitions(name: str, before: list[float], after: list[float]) -> tuple[str, str, Change]:
    # For shares small changes matter: from 100 % correct responses to 98 % is much.
    change = noise.of_repetitions(before, after, least=0.0 if _unit(name) == "%" else noise.LEAST_CHANGE)
    return _spread(before), _spread(after), change


def _shares(_: str, before: list[int], after: list[int]) -> tuple[str, str, Change]:
    one, other = (f"{count / max(1, total) * 100:.3f}" for count, total in (before, after))
    return one, other, noise.of_shares(*zip(before, after, strict=True))


def _blocks(_: str, before: dict[str, Any], after: dict[str, Any]) -> tuple[str, str, Change]:
    factor = ratio(after["value"] or None, before["value"])
    change = Change(None) if factor is None else noise.of_blocks(before["blocks"], after["blocks"], factor)
    return number(before["value"]), number(after["value"]), change


def _verdict(name: str, change: Change) -> str:
    if not change.real:
        return UNKNOWN if change.real is None else UNCHANGED
    rising, unit = bool(change.ratio and change.ratio > 1), _unit(name)
    if unit in TIMES:
        return "slower" if rising else "faster"
    if unit.endswith("/s"):
        return "faster" if rising else "slower"
    return "more" if rising else "less"


def _spread(values: list[float]) -> str:
    return number(values[0]) if len(values) == 1 else str(Spread.of(values))


def _unit(name: str) -> str:
    """The unit of a figure: the last word after the colon, such as ms in "frozen: p50 ms"; empty without a colon."""
    return name.rsplit(": ", 1)[-1].split()[-1] if ": " in name else ""


def _pairs(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """The keys of both, those of `one` first, with the two values; None is missing."""
    return [(key, one.get(key), other.get(key)) for key in dict.fromkeys([*one, *other])]
