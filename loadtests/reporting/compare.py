"""Two reports side by side: what changed beyond noise."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests.reporting import histograms, noise, plots
from loadtests.reporting.campaign import FILE, FORMAT
from loadtests.reporting.figures import Spread, number
from loadtests.reporting.noise import Change
from loadtests.reporting.report import Report
from loadtests.reporting.result import Result, Table
from loadtests.reporting.summaries import PERCENTILES

UNCHANGED, UNKNOWN, ONLY_BEFORE, ONLY_AFTER = (
    "no change beyond noise",
    "cannot tell from one value",
    "only in A",
    "only in B",
)
# What differs between any two runs.
EXPECTED = ("date", "commit", "load average at the start", "recording")
# Units of which less is faster.
TIMES = ("ms", "s", "seconds", "min")
COLUMNS = ("figure", "A", "B", "B / A", "interval", "verdict")
EXPLANATION = (
    "Figures with repetitions show the median and, in brackets, the least and the most; they changed if a rank test (Mann and "
    "Whitney, 5 %) says so or, where repetitions are too few for that, if their ranges lie apart by more than either is wide. "
    "Percentiles and rates of a single run have an interval of 99 % from drawing blocks of its time again and again (bootstrap); "
    "what one run differs from the next for other reasons is not in it. A change of less than 3 % counts as none."
)


class IncomparableError(Exception):
    """A report is not there, cannot be read, or answers another question than the other one."""


@dataclass(frozen=True)
class Row:
    """A figure on both sides, as text, and how it changed; `change` is None where it is on one side only."""

    name: str
    before: str
    after: str
    change: Change | None
    verdict: str

    @property
    def cells(self) -> tuple[str, ...]:
        """As `COLUMNS` says."""
        change = self.change or Change(None)
        interval = "–" if change.low is None else f"{change.low:.3f}–{change.high:.3f}"
        return (
            self.name,
            self.before,
            self.after,
            "–" if change.ratio is None else f"{change.ratio:.3f}",
            interval,
            self.verdict,
        )


def write(before: Path, after: Path, directory: Path | None = None) -> tuple[Path, str]:
    """Write `compare.html`, `compare.md` and the plot into a directory, by default that of the latter report; returns the path of
    the page and the table as text. Raises `IncomparableError`."""
    documents = [read(path) for path in (before, after)]
    report = report_of(*documents)
    home = after if after.is_dir() else after.parent
    text = "\n".join([*report.notes[:-1], _text(report.results[0].tables[0]), report.headline])
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
    result = Result("compare", "What changed", tables=[Table("A and B", COLUMNS, [row.cells for row in rows])])
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
        headline=", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "nothing to compare",
        files=True,
        name="compare",
    )


def rows_of(before: dict[str, Any], after: dict[str, Any]) -> list[Row]:
    """Figures first, then each run."""
    rows = [
        _figure(name, before["figures"].get(name), after["figures"].get(name))
        for name in _both(before["figures"], after["figures"])
    ]
    one, other = _labelled(before), _labelled(after)
    for label in _both(one, other):
        if label in one and label in other:
            rows += _runs(label, one[label], other[label])
        else:
            rows.append(_lonely(label, label in one))
    return rows


def _figure(name: str, before: list[float] | None, after: list[float] | None) -> Row:
    if not before or not after:
        return _lonely(name, bool(before))
    change = noise.of_repetitions(before, after)
    return Row(name, _spread(before), _spread(after), change, _verdict(name, change))


def _runs(label: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Row]:
    one, other = before["requests"], after["requests"]
    for request in _both(one, other):
        name = f"{label}, {request}"
        if request not in one or request not in other:
            yield _lonely(name, request in one)
            continue
        pair = one[request], other[request]
        counts = [histograms.unpacked(part["blocks"]) if part["blocks"] else None for part in pair]
        rates = [part["count"] / run["summary"]["seconds"] for part, run in zip(pair, (before, after), strict=True)]
        yield _measured(f"{name}: requests/s", rates, counts, None)
        for key, share in PERCENTILES.items():
            words = key.removesuffix("_ms").replace("p999", "p99.9")
            yield _measured(f"{name}, {words}: ms", [part[key] for part in pair], counts, share)


def _measured(name: str, values: list[float | None], counts: list[Any], share: float | None) -> Row:
    ratio = values[1] / values[0] if values[0] and values[1] else None
    if ratio is None or share == 100 or any(one is None for one in counts):
        # Nothing says how far chance moves the slowest request of all.
        change = Change(ratio)
    elif share is None:
        change = noise.of_rate(*counts, ratio)
    else:
        change = noise.of_percentile(*counts, share, ratio)
    return Row(name, *map(number, values), change, _verdict(name, change))


def _verdict(name: str, change: Change) -> str:
    if change.real is None:
        return UNKNOWN
    if not change.real:
        return UNCHANGED
    rising = change.ratio is not None and change.ratio > 1
    unit = name.rsplit(": ", 1)[-1] if ": " in name else ""
    if unit in TIMES:
        return "slower" if rising else "faster"
    if unit.endswith("/s") or unit == "Hz":
        return "faster" if rising else "slower"
    return "more" if rising else "less"


def _lonely(name: str, is_before: bool) -> Row:
    return Row(name, *(("there", "–") if is_before else ("–", "there")), None, ONLY_BEFORE if is_before else ONLY_AFTER)


def _spread(values: list[float]) -> str:
    return number(values[0]) if len(values) == 1 else str(Spread.of(values))


def _labelled(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Runs by label; repetitions under the same one are numbered."""
    found: dict[str, dict[str, Any]] = {}
    for run in document["runs"]:
        label, again = run["label"], 1
        while label in found:
            again += 1
            label = f"{run['label']} ({again})"
        found[label] = run
    return found


def _both(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys([*one, *other]))


def _facts(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return _both(before["facts"], after["facts"])


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Warnings: whatever is not the same besides what is meant to be compared."""
    told = []
    for name in _facts(before, after):
        pair = [document["facts"].get(name, "unknown") for document in (before, after)]
        if name not in EXPECTED and pair[0] != pair[1]:
            told.append(f"Warning: {name} is not the same: {pair[0]} and {pair[1]}.")
    one, other = _labelled(before), _labelled(after)
    for label in one:
        if label in other and one[label]["settings"] != other[label]["settings"]:
            told.append(f"Warning: the load of {label} is not the same.")
    return told


def _text(table: Table) -> str:
    lines = [table.columns, *table.rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(table.columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
