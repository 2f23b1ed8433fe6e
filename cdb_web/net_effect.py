"""The net effect of a change: by payload type, what is valid before and after it, as lanes and as intervals."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson

from cdb_rest.analysis.contents import Lists, interval_between
from cdb_rest.analysis.difference import Comparison, difference_lines, spans, summary_of
from cdb_rest.analysis.spans import Spans
from cdb_rest.rules.moment import AFTER_ALL, EVERYTHING, OPEN, Interval, Moment
from cdb_web.axis import Axis
from cdb_web.lanes import Lane, differing, extent, lane, with_space

WIDTH = 1000
# Payload types that are drawn and have a table, and rows of a table.
MAX_TYPES = 20
MAX_ROWS = 100
# Without a payload list, no IOV starts anywhere.
NO_LANE = Lane("o" * WIDTH, "0" * WIDTH)


@dataclass(frozen=True, slots=True)
class TypeEffect:
    """The effect on a payload type: the number of `differences`, the first ones as `rows` (members of JSON Lines), and the lanes
    before and after the change on one axis.

    `removed` and `added` have a 1 for each pixel in which another payload is valid, where one is valid before or after.
    `labels` are those of the axis as JSON, for a drawing of `width` pixels.
    """

    payload_type: str
    differences: int
    rows: list[dict[str, Any]]
    interval: Interval
    before: Lane
    after: Lane
    removed: str
    added: str
    labels: str
    width: int = WIDTH


def net_effect(comparison: Comparison) -> dict[str, object]:
    """The values for `net_effect.html`: the effects on the first payload types that differ, and the names of the others.

    Needs a snapshot or a transaction. Raises `django.db.Error`.
    """
    found = [item for item in spans(comparison, each_pair=True) if len(item.since.majors)]
    effects = [_effect(comparison, item) for item in found[:MAX_TYPES]]
    return {"net_effects": effects, "more_effects": [summary_of(item) for item in found[MAX_TYPES:]]}


def _effect(comparison: Comparison, item: Spans) -> TypeEffect:
    """The effect on a payload type, drawn around the interval in which it differs."""
    name, count, first, last = summary_of(item)
    interval = interval_between(first[0], last[1])
    [end_of_rows] = item.until.at(np.array([min(count, MAX_ROWS) - 1])).listed()
    comparison = replace(comparison, a=comparison.a.only([name]), b=comparison.b.only([name]))
    lists = [side.lists.get(name, ()) for side in (comparison.a, comparison.b)]
    axis = Axis.of(_window(interval, *lists), WIDTH)
    before, after = (lane(side[0], axis) if side else NO_LANE for side in lists)
    marks = differing([item], axis)
    removed, added = (
        "".join("0" if state in "go" else mark for mark, state in zip(marks, side.states, strict=True))
        for side in (before, after)
    )
    rows, _ = first_differences(replace(comparison, window=Interval(interval.start, end_of_rows)), MAX_ROWS)
    labels = json.dumps(axis.labels())
    return TypeEffect(name, count, rows, interval, before, after, removed, added, labels)


def _window(interval: Interval, before: Lists, after: Lists) -> Interval:
    """The affected interval with some space. If it is open, or after all that was valid, it has the last starts, too."""
    ends = [found.end for lists in (before, after) if lists and (found := extent(lists))]
    end = max([interval.start, *ends]) if interval.end == AFTER_ALL else interval.end
    window = Interval(min([interval.start, *ends]), end)
    axis = Axis.of(window, 1)
    if axis.major is not None and axis.last == OPEN + 1:
        # On an axis up to the largest minor number, nothing could be told apart.
        return Interval(Moment(max(axis.major - 1, 0), 0), min(Moment(axis.major + 2, 0), EVERYTHING.end))
    return with_space(window, EVERYTHING)


def first_differences(comparison: Comparison, most: int) -> tuple[list[dict[str, Any]], int]:
    """The first differences, as members of JSON Lines, and the number of all. Raises the errors of `difference_lines`.

    All are received, because a statement that sends rows cannot be stopped without its transaction.
    """
    count, rest = 0, b""
    shown: list[bytes] = []
    for chunk in difference_lines(comparison):
        count += chunk.count(b"\n")
        if len(shown) < most:
            *lines, rest = (rest + chunk).split(b"\n")
            shown += lines
    return [orjson.loads(line) for line in shown[:most]], count
