"""The moments at which two states of global tags have different payloads: what has to be processed again."""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cdb_rest.analysis.spans import Spans, union_of
from cdb_rest.rules.errors import TooManyRowsError
from cdb_rest.rules.moment import Interval, Moment

# A limit on the memory of a request: some 250 bytes for each interval.
MAX_INTERVALS = 200_000


class AffectedIntervals:
    """The union of intervals in which payload types differ."""

    def __init__(self) -> None:
        self._types: list[str] = []
        self._spans: list[Spans] = []
        self._waiting = 0

    def add(self, spans: Spans) -> None:
        """Add the differences of a payload type. Raises `TooManyRowsError` if the union has more than `MAX_INTERVALS`."""
        if not len(spans.since.majors):
            return
        self._types.append(spans.payload_type)
        self._spans.append(spans)
        self._waiting += len(self._spans[-1].since.majors)
        if self._waiting > MAX_INTERVALS:
            self._merge()

    def found(self) -> tuple[list[str], list[Interval]]:
        """The payload types in the order in which they were added, and the disjoint intervals in order. Raises as `add`."""
        if not self._spans:
            return [], []
        union = self._merge()
        return self._types, list(map(Interval, union.since.listed(), union.until.listed()))

    def _merge(self) -> Spans:
        union = union_of(self._spans)
        if len(union.since.majors) > MAX_INTERVALS:
            raise TooManyRowsError(
                f"The tags differ in more than {MAX_INTERVALS} separate intervals; ask for a smaller window."
            )
        self._spans, self._waiting = [union], 0
        return union


class AffectedMoments:
    """Which of the moments are in intervals in which payload types differ."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        self._asked = list(dict.fromkeys(moments))
        self._order = np.array(sorted(range(len(self._asked)), key=self._asked.__getitem__), np.int64)
        self._in_order = [self._asked[place] for place in self._order]
        # For each payload type, which of the moments in their order differ.
        self._hits: dict[str, npt.NDArray[np.bool_]] = {}

    def add(self, spans: Spans) -> None:
        """Add the differences of a payload type."""
        hits = np.zeros(len(self._asked), np.bool_)
        for since, until in zip(spans.since.listed(), spans.until.listed(), strict=True):
            hits[bisect_left(self._in_order, since) : bisect_left(self._in_order, until)] = True
        if hits.any():
            self._hits[spans.payload_type] = hits

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
