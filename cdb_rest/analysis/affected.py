"""The moments at which two states of global tags have different payloads: what has to be processed again."""

from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from cdb_rest.analysis.contents import interval_between
from cdb_rest.analysis.difference import Difference
from cdb_rest.rules.errors import TooManyRowsError
from cdb_rest.rules.moment import Interval, Moment

# A limit on the memory of a request: some 250 bytes for each interval.
MAX_INTERVALS = 200_000


class AffectedIntervals:
    """The union of intervals in which payload types differ, from batches of differences."""

    def __init__(self) -> None:
        self._types: dict[str, None] = {}
        self._union: list[tuple[Decimal, Decimal]] = []
        self._waiting: list[tuple[Decimal, Decimal]] = []

    def add(self, batch: list[Difference]) -> None:
        """Add differences. Raises `TooManyRowsError` if the union gets more than `MAX_INTERVALS` intervals."""
        self._types |= dict.fromkeys(item.payload_type for item in batch)
        self._waiting += [(item.since, item.until) for item in batch]
        if len(self._waiting) > MAX_INTERVALS:
            self._merge()

    def found(self) -> tuple[list[str], list[Interval]]:
        """The payload types in the order in which they were added, and the disjoint intervals in order. Raises as `add`."""
        self._merge()
        return list(self._types), [interval_between(*pair) for pair in self._union]

    def _merge(self) -> None:
        merged: list[tuple[Decimal, Decimal]] = []
        for since, until in sorted([*self._union, *self._waiting]):
            if merged and since <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], until))
            else:
                merged.append((since, until))
        if len(merged) > MAX_INTERVALS:
            raise TooManyRowsError(
                f"The tags differ in more than {MAX_INTERVALS} separate intervals; ask for a smaller window."
            )
        self._union, self._waiting = merged, []


class AffectedMoments:
    """Which of the moments are in intervals in which payload types differ, from batches of differences."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        self._asked = list(dict.fromkeys(moments))
        combined = [moment.combined for moment in self._asked]
        self._order = np.array(sorted(range(len(combined)), key=combined.__getitem__), np.int64)
        self._in_order = [combined[place] for place in self._order]
        # For each payload type, which of the moments in their order differ.
        self._hits: dict[str, npt.NDArray[np.bool_]] = {}

    def add(self, batch: list[Difference]) -> None:
        """Add differences."""
        for item in batch:
            first, last = bisect_left(self._in_order, item.since), bisect_left(self._in_order, item.until)
            if first < last:
                if item.payload_type not in self._hits:
                    self._hits[item.payload_type] = np.zeros(len(self._asked), np.bool_)
                self._hits[item.payload_type][first:last] = True

    def found(self) -> list[tuple[list[str], list[Moment]]]:
        """Groups of moments: the payload types, in the order in which they were added, and all moments at which exactly
        these differ.

        The groups have the order of their first moments, and the moments that of the request, without repetitions.
        """
        names = list(self._hits)
        # One row of bits for each moment, in the order of the request.
        bits = np.zeros((len(self._asked), (len(names) + 7) // 8), np.uint8)
        for number, hits in enumerate(self._hits.values()):
            bits[self._order[hits], number // 8] |= np.uint8(128 >> number % 8)
        groups: dict[bytes, list[Moment]] = {}
        for place in np.flatnonzero(bits.any(axis=1)):
            groups.setdefault(bits[place].tobytes(), []).append(self._asked[place])
        return [(_names_of(key, names), moments) for key, moments in groups.items()]


def _names_of(key: bytes, names: list[str]) -> list[str]:
    which = np.unpackbits(np.frombuffer(key, np.uint8), count=len(names))
    return [names[number] for number in np.flatnonzero(which)]
