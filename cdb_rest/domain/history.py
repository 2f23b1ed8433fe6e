"""What a change of a payload list means for its history: which rows and areas of rows are superseded.

The area of a row is the interval from its start up to the next start in the list.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from cdb_rest.domain.moment import Moment

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Superseded(Generic[Key]):
    """An area that a row had before a change, from `since` up to `until` (None: to the end of time).

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
