"""The drawing of what an insertion would change: one lane for each payload type, in the window of the changes."""

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any

from cdb_rest import named_sql
from cdb_rest.analysis.contents import read_contents
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.rules.moment import AFTER_ALL, Interval, Moment
from cdb_rest.writes.placing import Placement
from cdb_rest.writes.rows import interval_of
from cdb_web.axis import Axis
from cdb_web.lanes import Lane, lane, marked

NEXT_STARTS = named_sql.load("next_starts")
WIDTH = 1000
MAX_LANES = 20


def draw_plan(name: str, placements: Sequence[Placement], *, clearing: bool = False) -> dict[str, Any]:
    """The values for the drawing of a preview, in one lane for each of the first `MAX_LANES` payload types.

    `drawn` is a list of tuples: the payload type, the present `Lane`, and two strings with a 1 for each pixel in which IOVs
    are added or removed. `labels` are those of the axis as JSON, `undrawn` is the number of further payload types, and `width`
    the number of pixels. The placements are those of a dry run, at least one; with `clearing`, that of a clearing. Must be
    called in a snapshot. Raises `GlobalTagNotFoundError`, or `django.db.Error`.
    """
    contents = read_contents([(name, None)])
    by_type: dict[str, list[Placement]] = defaultdict(list)
    for placement in placements:
        by_type[placement.payload_list.payload_type.name].append(placement)
    shown = dict(islice(by_type.items(), MAX_LANES))
    added = {payload_type: [] if clearing else _valid(group) for payload_type, group in shown.items()}
    removed = {
        # Not what rows of the same file take from each other.
        payload_type: [
            part
            for item in group
            for cut in item.cuts
            if cut.row.iov.id is not None
            for part in _without(cut.was, cut.rest)
        ]
        for payload_type, group in shown.items()
    }
    axis = _axis([item for parts in (*added.values(), *removed.values()) for item in parts])
    lanes = []
    for payload_type in shown:
        lists = contents.lists.get(payload_type)
        states = lane(lists[0], axis) if lists else Lane("g" * WIDTH, "0" * WIDTH)
        lanes.append((payload_type, states, marked(added[payload_type], axis), marked(removed[payload_type], axis)))
    return {"drawn": lanes, "labels": json.dumps(axis.labels()), "undrawn": len(by_type) - len(shown), "width": WIDTH}


def _valid(placements: Sequence[Placement]) -> list[Interval]:
    """The intervals in which placed IOVs would be valid."""
    intervals = [interval_of(placement.iov) for placement in placements]
    to_next = [place for place, one in enumerate(placements) if one.since_only]
    parameters = {
        "lists": [placements[place].payload_list.rows_list_id for place in to_next],
        "versions": [placements[place].payload_list.rows_version for place in to_next],
        "moments": [intervals[place].start.combined for place in to_next],
    }
    for place, (end,) in zip(to_next, fetch_all(NEXT_STARTS, parameters), strict=True):
        intervals[place] = Interval(intervals[place].start, AFTER_ALL if end is None else Moment.from_combined(end))
    return intervals


def _without(was: Interval, rest: Sequence[Interval]) -> list[Interval]:
    """The interval `was` without the intervals in `rest`, which are sorted and inside of it."""
    edges = [was.start, *(edge for interval in rest for edge in (interval.start, interval.end)), was.end]
    return [Interval(*pair) for pair in list(pairwise(edges))[::2] if pair[0] < pair[1]]


def _axis(intervals: Sequence[Interval]) -> Axis:
    """An axis with all edges of the intervals except open ends, and some space at both sides."""
    edges = sorted(edge for interval in intervals for edge in (interval.start, interval.end) if edge != AFTER_ALL)
    first, last = edges[0], edges[-1]
    if first.major == last.major and all(interval.end != AFTER_ALL for interval in intervals):
        space = (last.minor - first.minor) // 5 + 1
        return Axis.of(
            Interval(Moment(first.major, max(first.minor - space, 0)), Moment(last.major, last.minor + space)), WIDTH
        )
    space = (last.major - first.major) // 5 + 1
    start, end = Moment(max(first.major - space, 0), 0), Moment(last.major + space + 1, 0)
    return Axis.of(Interval(start, min(end, AFTER_ALL)), WIDTH)
