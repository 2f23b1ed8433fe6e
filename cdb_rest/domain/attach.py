"""What attaching an interval does to the IOVs that a payload list holds already.

The valid payload of a list at a moment is that of the row with the latest start at or before it, if the moment is before
that row's end. So of each row only the part up to the start of the next one is visible.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from cdb_rest.domain.errors import OverlapError
from cdb_rest.domain.moment import AFTER_ALL, Interval, Moment


class Row(Protocol):
    """An IOV of a list, whatever else it is."""

    interval: Interval


AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(frozen=True, slots=True)
class Cut(Generic[AnyRow]):
    """What an attached interval leaves of a row that had the interval `was`: nothing (it is detached), one interval (it
    is trimmed, or its start moves) or two (it is split).
    """

    row: AnyRow
    was: Interval
    rest: tuple[Interval, ...]


def plan_attach(new: Interval, rows: Sequence[AnyRow]) -> list[Cut[AnyRow]]:
    """The cuts after which the payload attached with `new` is valid in all of it, and all else is as it was.

    `rows`, by start, are those that start in `new` or at its end, the last one before and, if need be, later ones.
    """
    return [
        Cut(row, row.interval, _rest(row, until, new))
        for row, until in _visible_ends(rows)
        if _is_touched(row, until, new)
    ]


def plan_since_only(new: Interval, rows: Sequence[AnyRow]) -> list[Cut[AnyRow]]:
    """The cuts for a row that starts with `new` and is valid up to the next start of its list, whatever stands there.

    A row with the same start is hidden as a whole and goes. The one before, if it is open, stays so: it is hidden from
    here on as it is. A closed one is trimmed, because closed intervals do not overlap later rows.
    """
    return [cut for cut in plan_attach(up_to_next(new, rows), rows) if not (cut.rest and cut.was.is_open)]


def up_to_next(new: Interval, rows: Sequence[Row]) -> Interval:
    """The part of `new` before the next start among `rows`."""
    following = (row.interval.start for row in rows if row.interval.start > new.start)
    return Interval(new.start, next(following, AFTER_ALL))


class Defined(Generic[AnyRow]):
    """What is defined in a list, in a protected tag: it stays."""

    def __init__(self, rows: Sequence[AnyRow]) -> None:
        self._rows = [(row, row.interval, Interval(row.interval.start, until)) for row, until in _visible_ends(rows)]
        self._starts = [row.interval.start for row in rows]

    def check_kept(self, new: Interval, effective: Interval, name: Callable[[AnyRow], str]) -> None:
        """Raise `OverlapError`, with both intervals, if `new`, valid in `effective`, would change what is defined.

        Online running may go on: an open interval may follow an open last one. `name` gives a row's name for the message.
        """
        first = max(bisect_right(self._starts, effective.start) - 1, 0)
        last = bisect_left(self._starts, effective.end)
        for number, (row, interval, visible) in enumerate(self._rows[first:last], first):
            if not visible.overlaps(effective):
                continue
            follows = number == len(self._rows) - 1 and interval.is_open and interval.start < new.start
            if follows and new.is_open:
                continue
            hint = " After its start only an open interval is taken." if follows else ""
            raise OverlapError(
                f"The interval {new} overlaps {interval} of {name(row)}, "
                f"and what is defined in a protected global tag stays.{hint}"
            )


def _visible_ends(rows: Sequence[AnyRow]) -> list[tuple[AnyRow, Moment]]:
    """Each row with the end of its visible part: its own, or the start of the next row if that is earlier."""
    ends = [min(row.interval.end, following.interval.start) for row, following in pairwise(rows)]
    return list(zip(rows, [*ends, *(row.interval.end for row in rows[-1:])], strict=True))


def _is_touched(row: Row, until: Moment, new: Interval) -> bool:
    return new.contains(row.interval.start) or row.interval.start < new.start < until


def _rest(row: Row, until: Moment, new: Interval) -> tuple[Interval, ...]:
    start, end = row.interval.start, row.interval.end
    before = (Interval(start, new.start),) if start < new.start else ()
    # The end stays as it is, even if a later row hides a part.
    after = (Interval(new.end, end),) if until > new.end else ()
    return before + after
