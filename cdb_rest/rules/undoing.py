"""The inverse of one change of a payload list, applied to its present rows: a three-way merge.

The *owner* of a moment is the row with the latest start at or before it. Its payload is valid if the moment is before its end.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from cdb_rest.rules.moment import AFTER_ALL, Interval, Moment


class ListRow(NamedTuple):
    """A row of a payload list. Two rows are the same if their intervals and payloads are; `source` is the caller's."""

    interval: Interval
    payload: Hashable
    source: Any = None

    @property
    def key(self) -> tuple[Interval, Hashable]:
        """What identifies the row in its list."""
        return self.interval, self.payload


Rows = Sequence[ListRow]
Owner = ListRow | None


@dataclass
class UndoObstacleError(Exception):
    """A later change has changed what is valid at a moment, or the payload list (None), so that the change cannot be undone."""

    moment: Moment | None


def undo_rows(before: Rows, after: Rows, now: Rows) -> list[tuple[ListRow, Interval]]:
    """What the rows `now` become if the change from `before` to `after` is undone: rows of these lists, each with its interval.

    All are ordered by start. Without later changes, the result is `before`. What is valid stays as it is now where the change has
    not changed it, and where later changes have. Elsewhere, rows that the change has removed own again what they owned, and rows
    that it has added, or parts of them, own nothing: what is left belongs to the row before, which may be open.

    Raises `UndoObstacleError` if a row that the change has added, and that changed what is valid, has not the same start and
    payload any more, or is longer; or if something else is valid where the payload of a removed row would be valid again.
    """
    were, are = {row.key for row in before}, {row.key for row in after}
    starts = [row.interval.start for row in after]

    def is_left_of_added(row: ListRow) -> bool:
        place = bisect_right(starts, row.interval.start)
        return place > 0 and after[place - 1].key not in were and after[place - 1].payload == row.payload

    others = [row for row in now if not is_left_of_added(row)]
    present = {(row.interval.start, row.payload): row.interval for row in now}
    parts: list[tuple[Moment, Owner]] = []
    for moment, (was, had, has, other) in owners(before, after, now, others):
        is_removed = was is not None and was.key not in are
        is_added = had is not None and had.key not in were
        old, new, valid = (valid_at(owner, moment) for owner in (was, had, has))
        if old != new is not None and is_added and had is not None:
            found = present.get((had.interval.start, had.payload))
            if found is None or found.end > had.interval.end:
                raise UndoObstacleError(had.interval.start)
        if old != new and is_removed and valid != new:
            raise UndoObstacleError(moment)
        owner = has
        if valid == new and (is_removed or is_added):
            owner = was if is_removed else other
            if old == new and valid_at(owner, moment) != valid:
                owner = has
        if not parts or parts[-1][1] is not owner:
            parts.append((moment, owner))
    return _placed(parts, _areas(before) | _areas(now))


def _areas(rows: Rows) -> dict[int, Interval]:
    """What each row owns, by its Python id."""
    starts = [*(row.interval.start for row in rows), AFTER_ALL]
    return {id(row): Interval(*area) for row, area in zip(rows, pairwise(starts), strict=True)}


def _placed(parts: Sequence[tuple[Moment, Owner]], areas: dict[int, Interval]) -> list[tuple[ListRow, Interval]]:
    """The rows that own these parts. A row without anything valid in its part is left out, unless it owned the same before."""
    edges = pairwise([*(start for start, _ in parts), AFTER_ALL])
    owned = [
        (owner, Interval(*edge))
        for (_, owner), edge in zip(parts, edges, strict=True)
        if owner is not None and (owner.interval.end > edge[0] or areas[id(owner)] == Interval(*edge))
    ]
    starts = [*(part.start for _, part in owned), AFTER_ALL]
    result = []
    for (owner, part), next_start in zip(owned, starts[1:], strict=True):
        interval = owner.interval
        # What the next row hides may stay, such as the rest of an open row.
        is_hidden = part.end == next_start and (interval.is_open or areas[id(owner)] == part)
        if interval.start != part.start or (interval.end > part.end and not is_hidden):
            interval = Interval(part.start, min(interval.end, part.end))
        result.append((owner, interval))
    return result


def owners(*lists: Rows) -> Iterator[tuple[Moment, list[Owner]]]:
    """The moments at which rows of the lists begin or end, in order, with the owner in each list from there on."""
    moments = sorted({moment for rows in lists for row in rows for moment in (row.interval.start, row.interval.end)})
    places = [0] * len(lists)
    for moment in moments:
        for number, rows in enumerate(lists):
            while places[number] < len(rows) and rows[places[number]].interval.start <= moment:
                places[number] += 1
        yield moment, [rows[place - 1] if place else None for rows, place in zip(lists, places, strict=True)]


def valid_at(owner: Owner, moment: Moment) -> Hashable:
    """The payload that is valid at a moment with this owner, None for none."""
    return owner.payload if owner is not None and moment < owner.interval.end else None


def first_difference(before: Rows, after: Rows) -> Moment | None:
    """The first moment at which something else is valid, None if there is no such moment."""
    return next(
        (moment for moment, (one, other) in owners(before, after) if valid_at(one, moment) != valid_at(other, moment)),
        None,
    )
