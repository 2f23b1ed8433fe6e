"""The interval rule: what attaching an interval does to the existing rows of a payload list.

The valid payload of a list at a moment is that of the row with the latest start at or before the moment, provided that
the moment is before that row's end. So only the part of each row up to the start of the next row is visible.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from cdb_rest.domain.errors import OverlapError
from cdb_rest.domain.moment import AFTER_ALL, Interval, Moment


class Row(Protocol):
    """A row of a payload list: any object with an interval."""

    interval: Interval


AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(frozen=True, slots=True)
class Cut(Generic[AnyRow]):
    """The effect of an attached interval on a row that had the interval `was`.

    `rest` is what remains of it: no interval (the row is detached), one (it is trimmed, or its start moves) or two (it is
    split).
    """

    row: AnyRow
    was: Interval
    rest: tuple[Interval, ...]


def plan_attach(new: Interval, rows: Sequence[AnyRow]) -> list[Cut[AnyRow]]:
    """The cuts that make the payload of `new` valid in the whole interval, and change nothing else.

    The rows are not changed; the caller must apply the cuts. `new` must not be empty.

    `rows`, ordered by start, must have every row that starts in `new` or at its end, and the last row before it; they may
    have later rows. No two rows may have the same start.
    """
    return [
        Cut(row, row.interval, _rest(row, until, new))
        for row, until in _visible_ends(rows)
        if _is_touched(row, until, new)
    ]


def plan_since_only(new: Interval, rows: Sequence[AnyRow]) -> list[Cut[AnyRow]]:
    """The cuts for a new row that starts at the start of `new` and is valid only up to the next start in its list.

    The end of `new` has no effect. `rows`, ordered by start, must have a row with this start, if any, the row before
    and the row after.

    A row with the same start becomes invisible and is detached. If the row before is open, it is not changed: the new row
    hides the rest of it. If it is closed, it is trimmed, because a closed interval must not overlap a later row.
    """
    return [cut for cut in plan_attach(up_to_next(new, rows), rows) if not (cut.rest and cut.was.is_open)]


def up_to_next(new: Interval, rows: Sequence[Row]) -> Interval:
    """The interval from the start of `new` to the next start among `rows`, which are ordered by start.

    It is open if there is no later start. The end of `new` has no effect.
    """
    following = (row.interval.start for row in rows if row.interval.start > new.start)
    return Interval(new.start, next(following, AFTER_ALL))


class ProtectedRows(Generic[AnyRow]):
    """The existing rows of a list in a protected tag, ordered by start. Their visible parts must not change.

    The intervals are those at the creation of this object: later changes of the rows, and later rows, have no effect.
    """

    def __init__(self, rows: Sequence[AnyRow]) -> None:
        self._rows = [(row, row.interval, Interval(row.interval.start, until)) for row, until in _visible_ends(rows)]
        self._starts = [row.interval.start for row in rows]

    def check_unchanged(self, new: Interval, effective: Interval, name: Callable[[AnyRow], str]) -> None:
        """Raise `OverlapError` if a row with the interval `new` would change a visible part.

        `effective` is the interval in which the row would be valid. The message has `new` and the interval of the
        existing row, whose name for the message `name` returns.

        As an exception for online running, an open interval is accepted if the last existing row is open and starts
        earlier. The new row then ends the validity of that row.
        """
        first = max(bisect_right(self._starts, effective.start) - 1, 0)
        last = bisect_left(self._starts, effective.end)
        for number, (row, interval, visible) in enumerate(self._rows[first:last], first):
            if not visible.overlaps(effective):
                continue
            follows = number == len(self._rows) - 1 and interval.is_open and interval.start < new.start
            if follows and new.is_open:
                continue
            hint = " After the start of the last IOV, which is open, only an open IOV is accepted." if follows else ""
            raise OverlapError(
                f"The interval {new} overlaps {interval} of {name(row)}, "
                f"and existing intervals of a protected global tag cannot be changed.{hint}"
            )


def _visible_ends(rows: Sequence[AnyRow]) -> list[tuple[AnyRow, Moment]]:
    """Each row with the end of its visible part: its own end, or the start of the next row if that is earlier."""
    ends = [min(row.interval.end, following.interval.start) for row, following in pairwise(rows)]
    return list(zip(rows, [*ends, *(row.interval.end for row in rows[-1:])], strict=True))


def _is_touched(row: Row, until: Moment, new: Interval) -> bool:
    return new.contains(row.interval.start) or row.interval.start < new.start < until


def _rest(row: Row, until: Moment, new: Interval) -> tuple[Interval, ...]:
    start, end = row.interval.start, row.interval.end
    before = (Interval(start, new.start),) if start < new.start else ()
    # The end is kept even if a later row hides a part of the interval.
    after = (Interval(new.end, end),) if until > new.end else ()
    return before + after
