"""Whether two measurements differ by more than chance: tests, and histograms of response times by blocks of time."""

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from loadtests.recording.reading import Recording
from loadtests.reporting.figures import ratio

# Smaller changes are normal from one run to the next, whatever the blocks of a single run say.
LEAST_CHANGE = 0.03
# Level of significance of the rank test.
LEVEL = 0.05
# With too few values for the rank test, the gap between the ranges must be so many times the wider range. For
# two values on each side from the same normal distribution this happens once in 18 cases; with 1 it would be
# once in 11.
APART = 1.5
# Parameters of the bootstrap. The confidence is high because many figures are compared at once.
CONFIDENCE, RESAMPLES, SEED = 0.99, 1000, 1
# With more arrangements of the values on the two sides, all of them would take too long.
MOST_ARRANGEMENTS = 20_000
# Each bin is 1 % wider than the previous one; the first begins at LEAST_MS, the last ends beyond a day.
LEAST_MS, GROWTH = 0.01, math.log(1.01)
BINS, BLOCKS = 2300, 30


class Change(NamedTuple):
    """The ratio of after to before with its interval, and whether it is beyond noise (None: too few values)."""

    ratio: float | None
    low: float | None = None
    high: float | None = None
    real: bool | None = None


def of_repetitions(before: Sequence[float], after: Sequence[float], *, least: float = LEAST_CHANGE) -> Change:
    """Compare repetitions with a two-sided rank test (Mann and Whitney) at 5 %.

    With too few repetitions for the test to reach 5 %, a change is real if the gap between the ranges is more
    than `APART` times the wider range. The interval extends from the smallest to the largest ratio of single
    repetitions. Medians that differ by less than the share `least` count as equal. Raises `ValueError` if one
    side has no value.
    """
    middles = [statistics.median(values) for values in (before, after)]
    if min(*before, *after) <= 0:
        same = middles[0] == middles[1]
        return Change(middles[1] / middles[0] if middles[0] > 0 else None, real=False if same else None)
    ratio, low, high = middles[1] / middles[0], min(after) / max(before), max(after) / min(before)
    if ratio == 1 or abs(ratio - 1) < least:
        return Change(ratio, low, high, real=False)
    if min(len(before), len(after)) == 1:
        return Change(ratio, low, high)
    if 2 / math.comb(len(before) + len(after), len(before)) <= LEVEL:
        return Change(ratio, low, high, real=rank_test(before, after) <= LEVEL)
    gap = max(min(after) - max(before), min(before) - max(after))
    widest = max(max(values) - min(values) for values in (before, after))
    return Change(ratio, low, high, real=gap > APART * widest)


def rank_test(before: Sequence[float], after: Sequence[float]) -> float:
    """The p-value of the two-sided rank test, from all arrangements of the values or, if there are many, a sample of them."""
    # Imported here, because it takes half of the time in which `python -m loadtests` starts.
    from scipy import stats

    method = stats.PermutationMethod(n_resamples=MOST_ARRANGEMENTS, rng=SEED)
    return float(stats.mannwhitneyu(before, after, method=method).pvalue)


def of_shares(counts: Sequence[int], totals: Sequence[int]) -> Change:
    """Compare two shares, given as counts and totals, with Fisher's exact test."""
    from scipy import stats

    others = [total - count for count, total in zip(counts, totals, strict=True)]
    before, after = (count / max(1, total) for count, total in zip(counts, totals, strict=True))
    chance = stats.fisher_exact([counts, others]).pvalue
    return Change(ratio(after, before), real=bool(chance < 1 - CONFIDENCE))


def of_blocks(before: numpy.ndarray, after: numpy.ndarray, share: float | None, ratio: float) -> Change:
    """The change of a percentile of response times, or of the rate (`share` is None), with a known ratio.

    `before` and `after` are counts by block and bin. The interval comes from resampling the blocks (bootstrap).
    """
    one, other = (_resampled(counts, share, seed) for seed, counts in enumerate((before, after), SEED))
    ratios = other / one * (ratio if share is None else 1)
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(value) for value in numpy.quantile(ratios, (tail, 1 - tail)))
    low, high = min(low, ratio), max(high, ratio)
    return Change(ratio, low, high, real=not low <= 1 <= high and abs(ratio - 1) >= LEAST_CHANGE)


def _resampled(counts: numpy.ndarray, share: float | None, seed: int) -> numpy.ndarray:
    """The percentile of each resample, or its number of requests relative to all."""
    # How often each block occurs in each resample: an array of resamples by blocks.
    blocks = len(counts)
    weights = numpy.random.default_rng(seed).multinomial(blocks, numpy.full(blocks, 1 / blocks), size=RESAMPLES)
    if share is None:
        return weights @ counts.sum(axis=1) / counts.sum()
    used = numpy.flatnonzero(counts.any(axis=0))
    sums = numpy.cumsum(weights @ counts[:, used[0] : used[-1] + 1], axis=1)
    # The first bin that reaches the share. A sample of empty blocks only reaches none and gets the smallest value.
    reached = (sums >= share / 100 * sums[:, -1:] - 1e-9).argmax(axis=1)
    return LEAST_MS * numpy.exp((used[0] + reached + 0.5) * GROWTH)


def blocks_of(requests: Recording, seconds: float) -> list[dict[str, Any]]:
    """The histogram of each of `BLOCKS` equal parts of `seconds`, counted from the origin of the recording.

    It consists of the number of the first non-empty bin and the counts from there to the last one. A request
    belongs to the block in which it was due.
    """
    block = numpy.minimum((requests.due / max(seconds, 1e-9) * BLOCKS).astype(int), BLOCKS - 1)
    bins = (numpy.log(numpy.maximum(requests.milliseconds, LEAST_MS) / LEAST_MS) / GROWTH).astype(int)
    histograms = [numpy.bincount(numpy.minimum(bins, BINS - 1)[block == number]) for number in range(BLOCKS)]
    firsts = [int((counts > 0).argmax()) if len(counts) else 0 for counts in histograms]
    return [
        {"first": first, "counts": counts[first:].tolist()} for first, counts in zip(firsts, histograms, strict=True)
    ]


def unpacked(blocks: list[dict[str, Any]]) -> numpy.ndarray:
    """The histograms of `blocks_of` as an array of blocks by bins."""
    counts = numpy.zeros((len(blocks), BINS), dtype=int)
    for place, block in enumerate(blocks):
        counts[place, block["first"] : block["first"] + len(block["counts"])] = block["counts"]
    return counts
