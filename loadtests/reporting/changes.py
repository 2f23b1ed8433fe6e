"""The differences between two reports, one row per figure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from loadtests.recording.outcome import NOT_SENT
from loadtests.reporting import histograms, noise
from loadtests.reporting.figures import Spread, number, ratio
from loadtests.reporting.noise import Change
from loadtests.reporting.summaries import PERCENTILES

UNCHANGED, UNKNOWN, ONLY_BEFORE, ONLY_AFTER = (
    "no change beyond noise",
    "too few values to tell",
    "only in A",
    "only in B",
)
VERDICTS = ("slower", "faster", "more", "less", UNCHANGED, UNKNOWN, ONLY_BEFORE, ONLY_AFTER)
# Units of time: a smaller value is faster.
TIMES = ("ms", "s", "seconds", "min")
# A percentile needs so many values above it: otherwise it changes by chance, to an unknown degree. The maximum
# always does.
LEAST_BEYOND = 10
# The least share of the blocks of a run in which requests are due. Resampling the single filled block of a
# storm has no meaning.
LEAST_FILLED = 0.5
COLUMNS = ("figure", "A", "B", "B / A", "interval", "verdict")


@dataclass(frozen=True)
class Row:
    """A figure of both reports, as text, and its change; `change` is None if only one report has the figure."""

    name: str
    before: str
    after: str
    change: Change | None
    verdict: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of the row, in the order of `COLUMNS`."""
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


def rows_of(before: dict[str, Any], after: dict[str, Any]) -> list[Row]:
    """The rows of the figures of the campaign, then those of each run."""
    rows = [
        _figure(name, before["figures"].get(name), after["figures"].get(name))
        for name in both(before["figures"], after["figures"])
    ]
    one, other = labelled(before), labelled(after)
    for label in both(one, other):
        if label in one and label in other:
            rows += _runs(label, one[label], other[label])
        else:
            rows.append(_one_sided(label, label in one))
    return rows


def _figure(name: str, before: list[float] | None, after: list[float] | None) -> Row:
    if not before or not after:
        return _one_sided(name, bool(before), _spread(before or after or []))
    # For shares small changes matter: from 100 % correct responses to 98 % is much.
    change = noise.of_repetitions(before, after, least=0.0 if _unit(name) == "%" else noise.LEAST_CHANGE)
    return Row(name, _spread(before), _spread(after), change, _verdict(name, change))


def _runs(label: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Row]:
    one, other = before["requests"], after["requests"]
    yield _failed(f"{label}, failed: %", before["summary"], after["summary"])
    for request in both(one, other):
        name = f"{label}, {request}"
        if request not in one or request not in other:
            yield _one_sided(name, request in one)
            continue
        pair = one[request], other[request]
        counts = [histograms.unpacked(part["blocks"]) if part["blocks"] else None for part in pair]
        rates = [
            ratio(part["count"], run["summary"]["seconds"]) for part, run in zip(pair, (before, after), strict=True)
        ]
        yield _measured(f"{name}: requests/s", rates, counts, None)
        for key, share in PERCENTILES.items():
            words = key.removesuffix("_ms").replace("p999", "p99.9")
            yield _measured(f"{name}, {words}: ms", [part[key] for part in pair], counts, share)


def _failed(name: str, before: dict[str, Any], after: dict[str, Any]) -> Row:
    failed = [sum(summary["failures"].values()) for summary in (before, after)]
    unsent = [summary["failures"].get(NOT_SENT, 0) for summary in (before, after)]
    tried = [summary["requests"] + count for summary, count in zip((before, after), unsent, strict=True)]
    change = noise.of_shares(failed, tried)
    shares = [f"{count / max(1, total) * 100:.3f}" for count, total in zip(failed, tried, strict=True)]
    return Row(name, *shares, change, _verdict(name, change, rising=failed[1] * tried[0] > failed[0] * tried[1]))


def _measured(name: str, values: list[float | None], counts: list[Any], share: float | None) -> Row:
    factor = values[1] / values[0] if values[0] and values[1] else None
    if factor is None or not all(_is_sufficient(one, share or 0) for one in counts):
        change = Change(factor)
    elif share is None:
        change = noise.of_rate(*counts, factor)
    else:
        change = noise.of_percentile(*counts, share, factor)
    return Row(name, *map(number, values), change, _verdict(name, change))


def _is_sufficient(counts: Any, share: float) -> bool:
    """Whether the blocks of a run have enough values for the interval of a percentile."""
    if counts is None or counts.sum() * (1 - share / 100) < LEAST_BEYOND:
        return False
    return bool(counts.any(axis=1).mean() >= LEAST_FILLED)


def _verdict(name: str, change: Change, *, rising: bool | None = None) -> str:
    if change.real is None:
        return UNKNOWN
    if not change.real:
        return UNCHANGED
    rising = bool(change.ratio and change.ratio > 1) if rising is None else rising
    unit = _unit(name)
    if unit in TIMES:
        return "slower" if rising else "faster"
    if unit.endswith("/s") or unit == "Hz":
        return "faster" if rising else "slower"
    return "more" if rising else "less"


def _one_sided(name: str, is_before: bool, shown: str = "there") -> Row:
    return Row(name, *((shown, "–") if is_before else ("–", shown)), None, ONLY_BEFORE if is_before else ONLY_AFTER)


def _spread(values: list[float]) -> str:
    if len(values) < 2:
        return number(values[0]) if values else "–"
    return str(Spread.of(values))


def _unit(name: str) -> str:
    """The unit of a figure: the last word after the colon, such as ms in "frozen: p50 ms"; empty without a colon."""
    return name.rsplit(": ", 1)[-1].split()[-1] if ": " in name else ""


def labelled(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The runs of a report by label; runs with the same label are numbered."""
    found: dict[str, dict[str, Any]] = {}
    for run in document["runs"]:
        label, again = run["label"], 1
        while label in found:
            again += 1
            label = f"{run['label']} ({again})"
        found[label] = run
    return found


def both(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The keys of both, those of `one` first."""
    return list(dict.fromkeys([*one, *other]))
