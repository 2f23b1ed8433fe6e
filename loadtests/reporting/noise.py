"""Whether two measurements differ by more than chance."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy

from loadtests.reporting import histograms

# What the service and the machine do from one run to the next anyway, whatever the blocks of a single run say.
LEAST_CHANGE = 0.03
LEVEL = 0.05
# So many times as far as either range is wide, ranges of too few values for ranks have to lie apart: of two values on each side
# that are drawn from the same normal distribution, one pair in 18 does, and one in 11 would with 1.
APART = 1.5
# Of the ratios by the bootstrap: many figures are compared at once, so few of them may differ by chance.
CONFIDENCE, RESAMPLES, SEED = 0.99, 1000, 1
MOST_ARRANGEMENTS = 20_000


@dataclass(frozen=True)
class Change:
    """The ratio of after to before with its interval, and whether it is beyond noise (None: one value each does not tell)."""

    ratio: float | None
    low: float | None = None
    high: float | None = None
    real: bool | None = None


def of_repetitions(before: Sequence[float], after: Sequence[float], *, least: float = LEAST_CHANGE) -> Change:
    """By ranks (Mann and Whitney, both sides, at 5 %); repetitions too few for ever reaching that are told apart where their
    ranges are farther from each other than `APART` times what either is wide. The interval goes from the least to the most that
    single repetitions give. Medians that differ by less than the share `least` are the same. Raises `ValueError` where one side
    has no value."""
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
    """The share of all ways to deal the values to the two sides whose ranks differ as much as these do: exactly for few values,
    by the normal distribution for many. Ties share their ranks."""
    values = numpy.array([*before, *after], dtype=float)
    count, total = len(before), len(values)
    ranks = numpy.array([(values < value).sum() + ((values == value).sum() + 1) / 2 for value in values])
    expected = count * (total + 1) / 2
    seen = abs(ranks[:count].sum() - expected)
    if math.comb(total, count) <= MOST_ARRANGEMENTS:
        sums = numpy.array([ranks[list(chosen)].sum() for chosen in combinations(range(total), count)])
        return float((abs(sums - expected) >= seen - 1e-9).mean())
    deviation = math.sqrt(ranks.var() * count * (total - count) / (total - 1))
    return 2 * (1 - statistics.NormalDist().cdf(seen / deviation)) if deviation else 1.0


def of_shares(counts: Sequence[int], totals: Sequence[int]) -> Change:
    """Of how many failed of how many, before and after: by the normal distribution of both shares together."""
    shares = [count / max(1, total) for count, total in zip(counts, totals, strict=True)]
    together = sum(counts) / max(1, sum(totals))
    deviation = math.sqrt(together * (1 - together) * sum(1 / max(1, total) for total in totals))
    far = abs(shares[1] - shares[0]) / deviation if deviation else 0.0
    chance = 2 * (1 - statistics.NormalDist().cdf(far))
    return Change(shares[1] / shares[0] if shares[0] else None, real=chance < 1 - CONFIDENCE)


def of_percentile(before: numpy.ndarray, after: numpy.ndarray, share: float, ratio: float) -> Change:
    """Of a percentile of response times whose ratio is known, from counts by block and bin: an interval by drawing blocks again
    and again (bootstrap)."""
    one, other = (_drawn_percentiles(counts, share, seed) for seed, counts in enumerate((before, after), SEED))
    return _judged(other / one, ratio)


def of_rate(before: numpy.ndarray, after: numpy.ndarray, ratio: float) -> Change:
    """Of requests a second whose ratio is known, from the counts of the same blocks."""
    one, other = (
        _weights(len(counts), seed) @ counts.sum(axis=1) / counts.sum()
        for seed, counts in enumerate((before, after), SEED)
    )
    return _judged(ratio * other / one, ratio)


def _judged(ratios: numpy.ndarray, ratio: float) -> Change:
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(value) for value in numpy.quantile(ratios, (tail, 1 - tail)))
    low, high = min(low, ratio), max(high, ratio)
    return Change(ratio, low, high, real=not low <= 1 <= high and abs(ratio - 1) >= LEAST_CHANGE)


def _drawn_percentiles(counts: numpy.ndarray, share: float, seed: int) -> numpy.ndarray:
    used = numpy.flatnonzero(counts.any(axis=0))
    sums = numpy.cumsum(_weights(len(counts), seed) @ counts[:, used[0] : used[-1] + 1], axis=1)
    # The first bin with which the share is reached; a draw of empty blocks alone has none, and stands for the least.
    reached = (sums >= share / 100 * sums[:, -1:] - 1e-9).argmax(axis=1)
    return histograms.values_of()[used[0] + reached]


def _weights(blocks: int, seed: int) -> numpy.ndarray:
    """How often each block is drawn, in each of many draws: draws by blocks."""
    return numpy.random.default_rng(seed).multinomial(blocks, numpy.full(blocks, 1 / blocks), size=RESAMPLES)
