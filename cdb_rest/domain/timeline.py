"""A stretch of a payload list in memory, which changes as the interval rule says."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cdb_rest.domain.attach import Cut, Defined, plan_attach, plan_since_only, up_to_next
from cdb_rest.domain.moment import Interval

IOV = TypeVar("IOV")


@dataclass(slots=True, eq=False)
class TimelineRow(Generic[IOV]):
    """A row of the list: its interval now, the caller's `iov` behind it, and whether it is still attached.

    `is_rest` says that it is the second part of a row that was split, with the same `iov`.
    """

    iov: IOV
    interval: Interval
    attached: bool = True
    is_rest: bool = False


class Timeline(Generic[IOV]):
    """The rows of a list around the intervals that are about to be attached, by start.

    It has to know every row that starts in one of these intervals or at its end, and the nearest one on either side. If it
    is `protected`, what is defined now stays.
    """

    def __init__(self, rows: Iterable[TimelineRow[IOV]], *, protected: bool = False) -> None:
        self._rows = {row.interval.start: row for row in rows}
        self._starts = sorted(self._rows)
        self._defined = Defined(self.rows()) if protected else None

    def attach(
        self, row: TimelineRow[IOV], *, since_only: bool, name: Callable[[TimelineRow[IOV]], str]
    ) -> list[Cut[TimelineRow[IOV]]]:
        """Add `row`, cut what stands in its way, and return what was cut; since only: up to the next start of the list.

        Raises `OverlapError` if that changes what has to stay, and then nothing has changed; `name` is for its message.
        """
        first = max(bisect_left(self._starts, row.interval.start) - 1, 0)
        last = bisect_right(self._starts, row.interval.start if since_only else row.interval.end) + 1
        near = [self._rows[start] for start in self._starts[first:last]]
        if self._defined is not None:
            self._defined.check_kept(row.interval, up_to_next(row.interval, near) if since_only else row.interval, name)
        cuts = (plan_since_only if since_only else plan_attach)(row.interval, near)
        for start in self._starts[first:last]:
            del self._rows[start]
        touched = {id(cut.row) for cut in cuts}
        left = [one for one in near if id(one) not in touched] + [one for cut in cuts for one in _apply(cut)] + [row]
        self._rows |= {one.interval.start: one for one in left}
        self._starts[first:last] = sorted(one.interval.start for one in left)
        return cuts

    def rows(self) -> list[TimelineRow[IOV]]:
        """The rows as they are now, by start."""
        return [self._rows[start] for start in self._starts]


def _apply(cut: Cut[TimelineRow[IOV]]) -> list[TimelineRow[IOV]]:
    """What is left of the row after the cut."""
    row = cut.row
    if not cut.rest:
        row.attached = False
        return []
    row.interval = cut.rest[0]
    return [row, *(TimelineRow(row.iov, interval, is_rest=True) for interval in cut.rest[1:])]
