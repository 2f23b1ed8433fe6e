"""Comparison of two reports: what changed beyond noise."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from loadtests.recording.outcome import NOT_SENT
from loadtests.reporting import noise, plots
from loadtests.reporting.campaign import FILE, FORMAT
from loadtests.reporting.figures import Spread, number, ratio
from loadtests.reporting.noise import Change
from loadtests.reporting.report import Report, markdown_table, notes
from loadtests.reporting.result import Result, Table

UNCHANGED, UNKNOWN = "no change beyond noise", "too few values to tell"
ONLY_BEFORE, ONLY_AFTER = "only in A", "only in B"
VERDICTS = ("slower", "faster", "more", "less", UNCHANGED, UNKNOWN, ONLY_BEFORE, ONLY_AFTER)
CHANGES = "What changed"
COLUMNS = ("figure", "A", "B", "B / A", "interval", "verdict")
# Units of time: a smaller value is faster.
TIMES = ("ms", "s", "seconds", "min")
# The figures of the requests of a run, with the ends of their names.
MEASURED = {"rate": ": requests/s", "p50_ms": ", p50: ms", "p90_ms": ", p90: ms", "p95_ms": ", p95: ms"}
MEASURED |= {"p99_ms": ", p99: ms", "p999_ms": ", p99.9: ms", "max_ms": ", max: ms"}
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
    drawn = {row.name: (*row.change[:3], row.verdict) for row in rows if row.change.ratio and row.change.low}
    if drawn:
        result.plots = [plots.ratios("B / A, with intervals", drawn, x="B / A")]
    facts = [(name, one or "–", other or "–") for name, one, other in _pairs(before["facts"], after["facts"])]
    return Report(
        f"Comparison: {after['title']}",
        Table("Environment", ("", "A", "B"), facts),
        [result],
        [*_differences(before, after), *notes("compare")],
        question="What changed from A to B beyond noise?",
        headline=", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        or "nothing to compare",
        name="compare",
    )


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Warnings about campaigns that failed or were not judged, and about unexpected differences."""
    sides = {"A": before["passed"], "B": after["passed"]}
    facts = [pair for pair in _pairs(before["facts"], after["facts"]) if pair[0] not in EXPECTED]
    loads = {
        label: _pairs(one["settings"], other["settings"])
        for label, one, other in _pairs(_runs_of(before), _runs_of(after))
        if one and other
    }
    return notes("differences", sides=sides, facts=facts, loads=loads)


def rows_of(before: dict[str, Any], after: dict[str, Any]) -> list[Row]:
    """The rows of the figures of the campaign, then those of each run."""
    rows = [_figure(*one) for one in _pairs(before["figures"], after["figures"])]
    for label, one, other in _pairs(_runs_of(before), _runs_of(after)):
        rows += _runs(label, one, other) if one and other else [_one_sided(label, is_before=bool(one))]
    return rows


def _figure(name: str, before: list[float] | None, after: list[float] | None) -> Row:
    if not before or not after:
        return _one_sided(name, is_before=bool(before))
    # For shares small changes matter: from 100 % correct responses to 98 % is much.
    change = noise.of_repetitions(before, after, least=0.0 if _unit(name) == "%" else noise.LEAST_CHANGE)
    return Row(name, _spread(before), _spread(after), change, _verdict(name, change))


def _runs(label: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Row]:
    yield _failed(f"{label}, failed: %", before["summary"], after["summary"])
    for request, one, other in _pairs(before["requests"], after["requests"]):
        name = f"{label}, {request}"
        if not one or not other:
            yield _one_sided(name, is_before=bool(one))
            continue
        for key, end in MEASURED.items():
            factor, blocks = ratio(other[key] or None, one[key]), [part["blocks"].get(key, []) for part in (one, other)]
            change = Change(None) if factor is None else noise.of_blocks(*blocks, factor)
            yield Row(name + end, number(one[key]), number(other[key]), change, _verdict(name + end, change))


def _failed(name: str, before: dict[str, Any], after: dict[str, Any]) -> Row:
    failed = [sum(summary["failures"].values()) for summary in (before, after)]
    tried = [summary["requests"] + summary["failures"].get(NOT_SENT, 0) for summary in (before, after)]
    change = noise.of_shares(failed, tried)
    shares = [f"{count / max(1, total) * 100:.3f}" for count, total in zip(failed, tried, strict=True)]
    return Row(name, *shares, change, _verdict(name, change))


def _verdict(name: str, change: Change) -> str:
    if not change.real:
        return UNKNOWN if change.real is None else UNCHANGED
    rising, unit = bool(change.ratio and change.ratio > 1), _unit(name)
    if unit in TIMES:
        return "slower" if rising else "faster"
    if unit.endswith("/s"):
        return "faster" if rising else "slower"
    return "more" if rising else "less"


def _one_sided(name: str, *, is_before: bool) -> Row:
    cells = ("there", "–", Change(None), ONLY_BEFORE) if is_before else ("–", "there", Change(None), ONLY_AFTER)
    return Row(name, *cells)


def _spread(values: list[float]) -> str:
    return number(values[0]) if len(values) == 1 else str(Spread.of(values))


def _unit(name: str) -> str:
    """The unit of a figure: the last word after the colon, such as ms in "frozen: p50 ms"; empty without a colon."""
    return name.rsplit(": ", 1)[-1].split()[-1] if ": " in name else ""


def _runs_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {run["label"]: run for run in document["runs"]}


def _pairs(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """The keys of both, those of `one` first, with the two values; None is missing."""
    return [(key, one.get(key), other.get(key)) for key in dict.fromkeys([*one, *other])]
