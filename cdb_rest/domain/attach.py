"""What attaching an interval does to the IOVs that a payload list holds already.

The valid payload of a list at a moment is that of the row with the latest start at or before it, if the moment is before
that row's end. So of each row only the part up to the start of the next one is visible.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from cdb_rest.domain.errors import OverlapError
from cdb_rest.domain.moment import AFTER_ALL, Interval, Moment


class Row(Protocol):
    """An IOV of a list, whatever else it is."""

    @property
    def interval(self) -> Interval: ...


@dataclass(frozen=True, slots=True)
class Cut:
    """What an attached interval leaves of a row that had the interval `was`: nothing (it is detached), one interval (it
    is trimmed, or its start moves) or two (it is split).
    """

    row: Any
    was: Interval
    rest: tuple[Interval, ...]


def plan_attach(new: Interval, rows: Sequence[Row]) -> list[Cut]:
    """The cuts after which the payload attached with `new` is valid in all of it, and all else is as it was.

    `rows`, by start, are those that start in `new` or at its end, the last one before and, if need be, later ones.
    """
    return [
        Cut(row, row.interval, _rest(row, until, new))
        for row, until in _visible_ends(rows)
        if _is_touched(row, until, new)
    ]


def plan_since_only(new: Interval, rows: Sequence[Row]) -> list[Cut]:
    """The cuts for a row that starts with `new` and is valid up to the next start of its list, whatever stands there.

    A row with the same start is hidden as a whole and goes. The one before, if it is open, stays so: it is hidden from
    here on as it is. A closed one is trimmed, because closed intervals do not overlap later rows.
    """
    return [cut for cut in plan_attach(_up_to_next(new, rows), rows) if not (cut.rest and cut.was.is_open)]


def check_undisturbed(
    new: Interval,
    rows: Sequence[Row],
    *,
    since_only: bool,
    was_there: Callable[[Any], bool],
    name: Callable[[Any], str],
) -> None:
    """Raise `OverlapError`, with both intervals, if attaching `new` would change what was defined in a protected tag.

    Only rows that were there before the request count. Online running may go on: an open interval may follow an open last
    one. `name` gives the name of a row for the message.
    """
    effective = _up_to_next(new, rows) if since_only else new
    old = [(row, Interval(row.interval.start, until)) for row, until in _visible_ends(rows) if was_there(row)]
    for row, visible in old:
        if not visible.overlaps(effective):
            continue
        follows = row is old[-1][0] and row.interval.is_open and row.interval.start < new.start
        if follows and new.is_open:
            continue
        raise OverlapError(
            f"The interval {new} overlaps {row.interval} of {name(row)}, "
            "and what is defined in a protected global tag stays."
        )


def _visible_ends(rows: Sequence[Row]) -> list[tuple[Row, Moment]]:
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


def _up_to_next(new: Interval, rows: Sequence[Row]) -> Interval:
    following = (row.interval.start for row in rows if row.interval.start > new.start)
    return Interval(new.start, next(following, AFTER_ALL))
