"""The moments at which two states of global tags have different payloads: what has to be processed again."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from cdb_rest.analysis.contents import interval_between
from cdb_rest.analysis.difference import Comparison, Difference, differences
from cdb_rest.domain.errors import TooManyRowsError
from cdb_rest.domain.moment import Interval, Moment

# A limit on the memory of a request: some 250 bytes for each interval.
MAX_INTERVALS = 200_000


def affected_intervals(comparison: Comparison) -> tuple[list[str], list[Interval]]:
    """The payload types that differ, in byte order, and the union of the intervals in which they do, in order.

    Raises `TooManyRowsError` if the union has more than `MAX_INTERVALS` intervals, and the errors of `differences`.
    """
    types: dict[str, None] = {}
    union: list[tuple[Decimal, Decimal]] = []
    waiting: list[tuple[Decimal, Decimal]] = []
    for batch in differences(comparison):
        types |= dict.fromkeys(one.payload_type for one in batch)
        waiting += [(one.since, one.until) for one in batch]
        if len(waiting) > MAX_INTERVALS:
            union, waiting = _union([*union, *waiting]), []
    union = _union([*union, *waiting])
    return list(types), [interval_between(*one) for one in union]


def _union(intervals: Iterable[tuple[Decimal, Decimal]]) -> list[tuple[Decimal, Decimal]]:
    """The same moments as disjoint intervals in order, with at least one moment between two of them."""
    found: list[tuple[Decimal, Decimal]] = []
    for since, until in sorted(intervals):
        if found and since <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], until))
        else:
            found.append((since, until))
    if len(found) > MAX_INTERVALS:
        raise TooManyRowsError(
            f"The tags differ in more than {MAX_INTERVALS} separate intervals; ask for a smaller window."
        )
    return found


def affected_moments(comparison: Comparison, moments: Sequence[Moment]) -> Iterator[tuple[list[str], list[Moment]]]:
    """The moments at which payload types differ, in groups: the payload types, in byte order, and all moments at which exactly
    these differ.

    The groups have the order of their first moments, and the moments that of `moments`, without repetitions. Raises the
    errors of `differences`.
    """
    asked = list(dict.fromkeys(moments))
    combined = [moment.combined for moment in asked]
    order = sorted(range(len(asked)), key=combined.__getitem__)
    in_order = [combined[index] for index in order]
    found = {
        name: hits
        for name, rows in groupby(_flat(differences(comparison)), key=attrgetter("payload_type"))
        if (hits := _hits(rows, in_order)).any()
    }
    names = list(found)
    # One row of bits for each moment, in the order of `moments`.
    bits = np.zeros((len(asked), (len(names) + 7) // 8), np.uint8)
    for number, hits in enumerate(found.values()):
        bits[np.array(order)[hits], number // 8] |= np.uint8(128 >> number % 8)
    groups: dict[bytes, list[Moment]] = {}
    for index in np.flatnonzero(bits.any(axis=1)):
        groups.setdefault(bits[index].tobytes(), []).append(asked[index])
    for key, members in groups.items():
        which = np.unpackbits(np.frombuffer(key, np.uint8), count=len(names))
        yield [names[number] for number in np.flatnonzero(which)], members


def _flat(batches: Iterable[list[Difference]]) -> Iterator[Difference]:
    for batch in batches:
        yield from batch


def _hits(rows: Iterable[Difference], moments: list[Decimal]) -> npt.NDArray[np.bool_]:
    """Which of the moments, which are in order, are in one of the intervals."""
    hits = np.zeros(len(moments), np.bool_)
    for row in rows:
        hits[bisect_left(moments, row.since) : bisect_left(moments, row.until)] = True
    return hits
