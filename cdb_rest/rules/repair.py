"""Repair of payload lists whose rows violate the rules, without changing the valid payload of any moment."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import TypeVar

from cdb_rest.rules.moment import Interval, Moment
from cdb_rest.rules.timeline import TimelineRow

IOV = TypeVar("IOV")


def repair_rows(rows: Sequence[TimelineRow[IOV]]) -> list[TimelineRow[IOV]]:
    """Detach and trim rows so that none is empty, no two have the same start, and no closed row overlaps the next one.

    `rows` must be all rows of a list, ordered by start. Among rows with the same start, the last one that is not empty is
    kept. If a start has only empty rows, they hid the row before, so that row is trimmed to this start.

    The rows are changed in place. Returns the rows that changed, detached ones with `attached` false.
    """
    changed: dict[int, TimelineRow[IOV]] = {}
    kept_rows: list[tuple[Moment, TimelineRow[IOV] | None]] = []
    for start, group in groupby(rows, key=lambda row: row.interval.start):
        candidates = list(group)
        kept = next((row for row in reversed(candidates) if not row.interval.is_empty), None)
        kept_rows.append((start, kept))
        for row in candidates:
            if row is not kept:
                row.attached = False
                changed[id(row)] = row
    for (start, kept), (until, following) in pairwise(kept_rows):
        hidden_by_empty = following is None
        if kept is not None and kept.interval.end > until and (hidden_by_empty or not kept.interval.is_open):
            kept.interval = Interval(start, until)
            changed[id(kept)] = kept
    return list(changed.values())
