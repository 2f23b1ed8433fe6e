"""Whether two measurements differ by more than chance: by their repetitions, or by the blocks of time of a single run."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy

from loadtests.recording.reading import Recording
from loadtests.reporting.summaries import PERCENTILES

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
# The time of a run is divided into so many blocks. A percentile of a block is known if at least LEAST_BEYOND of its
# requests took longer, and a change needs values of at least LEAST_BLOCKS blocks on both sides.
BLOCKS, LEAST_BEYOND, LEAST_BLOCKS = 30, 2, 15


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
    # Imported here, because it takes half of the time in which `python -m loadtests` starts.
    from scipy import stats

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
        return Change(ratio, low, high, real=bool(stats.mannwhitneyu(before, after).pvalue <= LEVEL))
    gap = max(min(after) - max(before), min(before) - max(after))
    widest = max(max(values) - min(values) for values in (before, after))
    return Change(ratio, low, high, real=gap > APART * widest)


def of_shares(counts: Sequence[int], totals: Sequence[int]) -> Change:
    """Compare two shares, given as counts and totals, with Fisher's exact test.

    The ratio is infinite if only the first share is 0.
    """
    from scipy import stats

    others = [total - count for count, total in zip(counts, totals, strict=True)]
    before, after = (count / max(1, total) for count, total in zip(counts, totals, strict=True))
    chance = stats.fisher_exact([counts, others]).pvalue
    return Change(after / before if before else math.inf if after else None, real=bool(chance < 1 - CONFIDENCE))


def of_blocks(before: Sequence[float | None], after: Sequence[float | None], ratio: float) -> Change:
    """The change of a rate or percentile with a known ratio, from its values in the blocks of both runs.

    The interval is that of the ratio of means when blocks are resampled (bootstrap). The change is unknown if too few blocks
    have a value, or a value above 0.
    """
    from scipy import stats

    if min(sum(map(bool, values)) for values in (before, after)) < LEAST_BLOCKS:
        return Change(ratio)
    known = [[value for value in values if value is not None] for values in (before, after)]
    options = {"n_resamples": RESAMPLES, "confidence_level": CONFIDENCE, "method": "percentile", "rng": SEED}
    found = stats.bootstrap(known, lambda one, other, axis: other.mean(axis) / one.mean(axis), **options)
    low, high = (float(value) for value in found.confidence_interval)
    real = not low <= 1 <= high and abs(ratio - 1) >= LEAST_CHANGE
    return Change(ratio, min(low, ratio), max(high, ratio), real=real)


def blocks_of(requests: Recording, seconds: float) -> dict[str, list[float | None]]:
    """The rate and the percentiles of each of `BLOCKS` equal parts of `seconds`, counted from the origin of the recording.

    A request belongs to the block in which it was due. The rate is in requests per second, the names of percentiles are
    those of `PERCENTILES`.
    """
    block = numpy.minimum((requests.due / max(seconds, 1e-9) * BLOCKS).astype(int), BLOCKS - 1)
    times = [requests.milliseconds[block == number] for number in range(BLOCKS)]
    percentiles = {name: [_percentile(part, share) for part in times] for name, share in PERCENTILES.items()}
    return {"rate": [len(part) * BLOCKS / max(seconds, 1e-9) for part in times], **percentiles}


def _percentile(values: numpy.ndarray, share: float) -> float | None:
    """The percentile of a block, None with too few values; without the bias of small samples, as their sizes differ."""
    if len(values) * (1 - share / 100) < LEAST_BEYOND:
        return None
    return float(numpy.percentile(values, share, method="median_unbiased"))
