"""Putting lists in order whose rows break the rules, without changing what is valid at any moment."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import TypeVar

from cdb_rest.domain.moment import Interval, Moment
from cdb_rest.domain.timeline import TimelineRow

IOV = TypeVar("IOV")


def tidy(rows: Sequence[TimelineRow[IOV]]) -> list[TimelineRow[IOV]]:
    """Detach and trim rows of a list until none is empty, no two start together and no closed one reaches into the next.

    `rows` are all of the list, by start; of those with one start the last that is not empty stays. Where an empty row hid
    an earlier one, that one ends there. Returns the rows that changed.
    """
    changed: dict[int, TimelineRow[IOV]] = {}
    keepers: list[tuple[Moment, TimelineRow[IOV] | None]] = []
    for start, group in groupby(rows, key=lambda row: row.interval.start):
        together = list(group)
        keeper = next((row for row in reversed(together) if not row.interval.is_empty), None)
        keepers.append((start, keeper))
        for row in together:
            if row is not keeper:
                row.attached = False
                changed[id(row)] = row
    for (start, kept), (until, following) in pairwise(keepers):
        hidden_by_empty = following is None
        if kept is not None and kept.interval.end > until and (hidden_by_empty or not kept.interval.is_open):
            kept.interval = Interval(start, until)
            changed[id(kept)] = kept
    return list(changed.values())
