"""A range of a payload list's rows in memory, to which the interval rule is applied."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cdb_rest.domain.attach import Cut, ProtectedRows, plan_attach, plan_since_only, up_to_next
from cdb_rest.domain.moment import Interval

IOV = TypeVar("IOV")


@dataclass(slots=True, eq=False)
class TimelineRow(Generic[IOV]):
    """A row of a payload list: the caller's object `iov`, its current interval, and whether it is still attached.

    `is_rest` marks the second part of a row that was split. It has the same `iov` as the first part.
    """

    iov: IOV
    interval: Interval
    attached: bool = True
    is_rest: bool = False


class Timeline(Generic[IOV]):
    """The rows of a list that may be affected by the intervals that are to be attached, ordered by start.

    `rows` must have every row that starts in one of these intervals or at its end, and the nearest row on either side of
    each interval. No two rows may have the same start.

    If the timeline is `protected`, the visible parts of `rows` must not change. Rows that `attach` adds are not
    protected.
    """

    def __init__(self, rows: Iterable[TimelineRow[IOV]], *, protected: bool = False) -> None:
        self._rows = {row.interval.start: row for row in rows}
        self._starts = sorted(self._rows)
        self._protected = ProtectedRows(self.rows()) if protected else None

    def attach(
        self, row: TimelineRow[IOV], *, since_only: bool, name: Callable[[TimelineRow[IOV]], str]
    ) -> list[Cut[TimelineRow[IOV]]]:
        """Add `row`, cut the rows that it overlaps, and return the cuts.

        The cut rows are changed in place. A row of which nothing remains gets `attached` false and leaves the timeline.

        With `since_only`, the row is valid only up to the next start in the list. Its interval must be open: this
        method does not shorten it. The interval must not be empty.

        Raises `OverlapError` if protected rows would change; the timeline is then unchanged. `name` returns the name of
        a row for the message.
        """
        first = max(bisect_left(self._starts, row.interval.start) - 1, 0)
        last = bisect_right(self._starts, row.interval.start if since_only else row.interval.end) + 1
        near = [self._rows[start] for start in self._starts[first:last]]
        if self._protected is not None:
            effective = up_to_next(row.interval, near) if since_only else row.interval
            self._protected.check_unchanged(row.interval, effective, name)
        cuts = (plan_since_only if since_only else plan_attach)(row.interval, near)
        for start in self._starts[first:last]:
            del self._rows[start]
        touched = {id(cut.row) for cut in cuts}
        remaining = (
            [one for one in near if id(one) not in touched] + [one for cut in cuts for one in _apply(cut)] + [row]
        )
        self._rows |= {one.interval.start: one for one in remaining}
        self._starts[first:last] = sorted(one.interval.start for one in remaining)
        return cuts

    def rows(self) -> list[TimelineRow[IOV]]:
        """The current rows, ordered by start."""
        return [self._rows[start] for start in self._starts]


def _apply(cut: Cut[TimelineRow[IOV]]) -> list[TimelineRow[IOV]]:
    """Apply a cut to its row. Returns the rows that remain: none, the row, or the row and its second part."""
    row = cut.row
    if not cut.rest:
        row.attached = False
        return []
    row.interval = cut.rest[0]
    return [row, *(TimelineRow(row.iov, interval, is_rest=True) for interval in cut.rest[1:])]
