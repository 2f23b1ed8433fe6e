"""Putting lists in order whose rows break the rules, without changing what is valid at any moment."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from cdb_rest.domain.moment import AFTER_ALL, Interval
from cdb_rest.domain.timeline import TimelineRow


def tidy(rows: Sequence[TimelineRow]) -> list[TimelineRow]:
    """Detach and trim rows of a list until none is empty, no two start together and no closed one reaches into the next.

    `rows` are all of the list, by start; of those with one start the last that is not empty stays. Where an empty row hid
    an earlier one, that one ends there. Returns the rows that changed.
    """
    changed: dict[int, TimelineRow] = {}
    stays: list[tuple[TimelineRow | None, Interval]] = []
    for _, group in groupby(rows, key=lambda row: row.interval.start):
        together = list(group)
        keeper = next((row for row in reversed(together) if not row.interval.is_empty), None)
        stays.append((keeper, together[0].interval))
        for row in together:
            if row is not keeper:
                row.attached = False
                changed[id(row)] = row
    for row, until, hidden in _followed(stays):
        if row.interval.end > until and (hidden or not row.interval.is_open):
            row.interval = Interval(row.interval.start, until)
            changed[id(row)] = row
    return list(changed.values())


def _followed(stays: list[tuple[TimelineRow | None, Interval]]) -> Iterator[tuple[TimelineRow, object, bool]]:
    """Each row that stays, the next start after it, and whether only empty rows start there."""
    for (row, _), (following, interval) in pairwise([*stays, (None, Interval(AFTER_ALL, AFTER_ALL))]):
        if row is not None:
            yield row, interval.start, following is None and interval.start != AFTER_ALL
