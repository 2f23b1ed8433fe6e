"""Histograms of response times by blocks of time, from which the interval of a percentile can be computed later."""

import math
from typing import Any

import numpy

from loadtests.recording.reading import Recording

# Each bin is 1 % wider than the previous one; the first begins at LEAST_MS, the last ends beyond a day.
LEAST_MS, GROWTH = 0.01, math.log(1.01)
BINS = 2300
BLOCKS = 30


def blocks_of(requests: Recording, seconds: float) -> list[dict[str, Any]]:
    """The histogram of each of `BLOCKS` equal parts of `seconds`, counted from the origin of the recording.

    It consists of the number of the first non-empty bin and the counts from there to the last one. A request
    belongs to the block in which it was due.
    """
    block = numpy.minimum((requests.due / max(seconds, 1e-9) * BLOCKS).astype(int), BLOCKS - 1)
    bins = bins_of(requests.milliseconds)
    return [_packed(numpy.bincount(bins[block == number], minlength=BINS)) for number in range(BLOCKS)]


def bins_of(milliseconds: numpy.ndarray) -> numpy.ndarray:
    """The bin of each time."""
    found = numpy.log(numpy.maximum(milliseconds, LEAST_MS) / LEAST_MS) / GROWTH
    return numpy.minimum(found.astype(int), BINS - 1)


def values_of() -> numpy.ndarray:
    """The middle of each bin in milliseconds."""
    return LEAST_MS * numpy.exp((numpy.arange(BINS) + 0.5) * GROWTH)


def unpacked(blocks: list[dict[str, Any]]) -> numpy.ndarray:
    """The histograms of `blocks_of` as an array of blocks by bins."""
    counts = numpy.zeros((len(blocks), BINS), dtype=int)
    for place, block in enumerate(blocks):
        counts[place, block["first"] : block["first"] + len(block["counts"])] = block["counts"]
    return counts


def _packed(counts: numpy.ndarray) -> dict[str, Any]:
    filled = numpy.flatnonzero(counts)
    if not len(filled):
        return {"first": 0, "counts": []}
    return {"first": int(filled[0]), "counts": counts[filled[0] : filled[-1] + 1].tolist()}
