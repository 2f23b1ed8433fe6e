"""The interval rule: what attaching an interval does to the existing rows of a payload list, and what that supersedes.

The valid payload of a list at a moment is that of the row with the latest start at or before the moment, provided that
the moment is before that row's end. So only the part of each row up to the start of the next row is visible.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from cdb_rest.rules.errors import OverlapError
from cdb_rest.rules.moment import AFTER_ALL, Interval, Mode, Moment


class Row(Protocol):
    """A row of a payload list: any object with an interval."""

    interval: Interval


AnyRow = TypeVar("AnyRow", bound=Row)
IOV = TypeVar("IOV")
Key = TypeVar("Key", bound=Hashable)


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


def plan_clear(cleared: Interval, rows: Sequence[AnyRow]) -> list[Cut[AnyRow]]:
    """The cuts after which no row is valid in `cleared`, and nothing changes outside of it. `rows` are as for `plan_attach`.

    The row before the interval is cut even where a later row hides it, because it would become visible there.
    """
    return [
        Cut(row, row.interval, _rest(row, until, cleared))
        for row, until in _visible_ends(rows)
        if cleared.contains(row.interval.start) or row.interval.start < cleared.start < row.interval.end
    ]


class ProtectedRows(Generic[AnyRow]):
    """The existing rows of a list in a protected tag, ordered by start. Their visible parts must not change.

    The intervals are those at the creation of this object: later changes of the rows, and later rows, have no effect.
    `mode` decides which intervals count as open.
    """

    def __init__(self, rows: Sequence[AnyRow], mode: Mode) -> None:
        self._rows = [(row, row.interval, Interval(row.interval.start, until)) for row, until in _visible_ends(rows)]
        self._starts = [row.interval.start for row in rows]
        self._mode = mode
        last = rows[-1].interval if rows else None
        self._open_since = last.start if last is not None and last.counts_as_open(mode) else None

    def is_continued_by(self, new: Interval) -> bool:
        """Whether `new` continues online running: it and the last existing interval count as open, and it starts later.

        Then it ends the validity of the last existing row, also after its own end.
        """
        return self._open_since is not None and self._open_since < new.start and new.counts_as_open(self._mode)

    def check_unchanged(self, new: Interval, effective: Interval, name: Callable[[AnyRow], str]) -> None:
        """Raise `OverlapError` if a row with the interval `new` would change a visible part.

        `effective` is the interval in which the row would be valid. The message has `new` and the interval of the
        existing row, whose name for the message `name` returns. The exception for online running is `is_continued_by`.
        """
        if self.is_continued_by(new):
            return
        first = max(bisect_right(self._starts, effective.start) - 1, 0)
        last = bisect_left(self._starts, effective.end)
        for row, interval, visible in self._rows[first:last]:
            if not visible.overlaps(effective):
                continue
            follows = self._open_since is not None and self._open_since < new.start
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


def _before(start: Moment, cut: Cut[AnyRow]) -> Cut[AnyRow]:
    """The cut, but nothing remains of its row after `start`."""
    return Cut(cut.row, cut.was, tuple(part for part in cut.rest if part.start < start))


@dataclass(slots=True, eq=False)
class TimelineRow(Generic[IOV]):
    """A row of a payload list: the caller's object `iov`, its current interval, and whether it is still attached.

    `is_rest` marks the second part of a row that was split. It has the same `iov` as the first part. `was` is the first interval.
    """

    iov: IOV
    interval: Interval
    attached: bool = True
    is_rest: bool = False
    was: Interval = field(init=False)

    def __post_init__(self) -> None:
        self.was = self.interval


class Timeline(Generic[IOV]):
    """The rows of a list that may be affected by the intervals that are to be attached, ordered by start.

    `rows` must have every row that starts in one of these intervals or at its end, and the nearest row on either side of
    each interval. No two rows may have the same start.

    If the timeline is `protected`, the visible parts of `rows` must not change, except that online running may continue.
    `mode` decides which intervals count as open then. Rows that `attach` adds are not protected.
    """

    def __init__(
        self, rows: Iterable[TimelineRow[IOV]], *, protected: bool = False, mode: Mode = Mode.CONTINUOUS
    ) -> None:
        self._rows = {row.interval.start: row for row in rows}
        self._starts = sorted(self._rows)
        self._protected = ProtectedRows(self.rows(), mode) if protected else None

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
        if self._protected is not None and self._protected.is_continued_by(row.interval):
            cuts = [_before(row.interval.start, cut) for cut in cuts]
        for cut in cuts:
            del self._rows[cut.was.start]
        remaining = {item.interval.start: item for cut in cuts for item in _apply(cut)} | {row.interval.start: row}
        self._rows |= remaining
        kept = {item.interval.start for item in near} - {cut.was.start for cut in cuts}
        self._starts[first:last] = sorted(kept.union(remaining))
        return cuts

    def clear(self, interval: Interval) -> list[Cut[TimelineRow[IOV]]]:
        """Cut the rows so that none is valid in the interval, and return the cuts; none if no row is valid there anyway."""
        if not self.is_valid_in(interval):
            return []
        near = self.rows()
        first = max(bisect_left(self._starts, interval.start) - 1, 0)
        cuts = plan_clear(interval, near[first:])
        touched = {id(cut.row) for cut in cuts}
        remaining = [row for row in near if id(row) not in touched] + [row for cut in cuts for row in _apply(cut)]
        self._rows = {row.interval.start: row for row in remaining}
        self._starts = sorted(self._rows)
        return cuts

    def is_valid_in(self, interval: Interval) -> bool:
        """Whether a row is valid at any moment of the interval."""
        visible = (Interval(row.interval.start, until) for row, until in _visible_ends(self.rows()))
        return any(not part.is_empty and part.overlaps(interval) for part in visible)

    def effective(self, interval: Interval, *, since_only: bool) -> Interval:
        """The interval in which a new row with this one would be valid: with `since_only`, up to the next start."""
        if not since_only:
            return interval
        following = bisect_right(self._starts, interval.start)
        return Interval(interval.start, self._starts[following] if following < len(self._starts) else AFTER_ALL)

    def holder(self, interval: Interval, is_same: Callable[[TimelineRow[IOV]], bool]) -> TimelineRow[IOV] | None:
        """The row that is valid at the start of the interval, if `is_same` is true for each row that is valid in it, and one is
        valid at each of its moments. Otherwise None.
        """
        number = bisect_right(self._starts, interval.start) - 1
        moment, found = interval.start, None
        while 0 <= number < len(self._starts) and self._starts[number] <= moment:
            row = self._rows[self._starts[number]]
            following = self._starts[number + 1] if number + 1 < len(self._starts) else AFTER_ALL
            until = min(row.interval.end, following)
            if until <= moment or not is_same(row):
                return None
            found = found or row
            if until >= interval.end:
                return found
            moment, number = until, number + 1
        return None

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


@dataclass(frozen=True, slots=True)
class Superseded(Generic[Key]):
    """An area that a row had before a change, from `since` up to `until` (None: to the end of time).

    The area of a row is the interval from its start up to the next start in the list.

    `since` is None if the area begins with the start of the row: then the row is superseded as a whole. Otherwise it is
    the part that the row lost.
    """

    key: Key
    since: Moment | None
    until: Moment | None


def superseded_areas(
    before: Sequence[tuple[Moment, Key]], after: Sequence[tuple[Moment, Key]]
) -> tuple[list[Superseded[Key]], list[Key]]:
    """The areas that a change ends, and the keys of unchanged rows whose area grows.

    `before` and `after` are either all rows of a list, or only the changed ones and their nearest neighbours: start and key,
    ordered by start. A row that does not change has the same key in both, and the same start.

    If the next row is removed, the area of an unchanged row grows. Then its old area is in the first result, and its key in
    the second.
    """
    next_start = dict(zip((key for _, key in after), _following(after), strict=True))
    areas, grown = [], []
    for (start, key), until in zip(before, _following(before), strict=True):
        # Where a faulty list has several rows with the same start, only the last one had an area.
        if until == start:
            continue
        if key not in next_start:
            areas.append(Superseded(key, None, until))
            continue
        now_until = next_start[key]
        if now_until is not None and (until is None or now_until < until):
            areas.append(Superseded(key, now_until, until))
        elif now_until != until:
            areas.append(Superseded(key, None, until))
            grown.append(key)
    return areas, grown


def _following(rows: Sequence[tuple[Moment, Key]]) -> list[Moment | None]:
    """The start of the next row for each row, None for the last one."""
    return [*(start for _, (start, _) in pairwise(rows)), *(None for _ in rows[-1:])]
