"""The net effect of a change: by payload type, what is valid before and after it, as lanes and as intervals."""

import json
from dataclasses import dataclass, replace
from typing import Any

import orjson

from cdb_rest.analysis.contents import Lists, interval_between
from cdb_rest.analysis.difference import Comparison, TypeSummary, difference_lines, summaries
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Moment
from cdb_web.axis import Axis
from cdb_web.batches import BATCH_ROWS, size_of
from cdb_web.lanes import Lane, differing, extent, lane

WIDTH = 1000
# Payload types that are drawn and have a table, and rows of a table.
MAX_TYPES = 20
MAX_ROWS = 100
NO_LANE = Lane("g" * WIDTH, "0" * WIDTH)


@dataclass(frozen=True)
class TypeEffect:
    """The effect on a payload type: the number of `differences`, the first ones as `rows` (members of JSON Lines), and lanes.

    `removed` and `added` have a 1 for each pixel in which another payload is valid, where one is valid before or after.
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


def net_effect(comparison: Comparison) -> dict[str, object]:
    """The values for `net_effect.html`: the effects on the first payload types that differ, and the names of the others.

    Types after the first `BATCH_ROWS` IOVs are not compared. Needs a snapshot or a transaction. Raises `django.db.Error`.
    """
    names: list[str] = []
    others: list[str] = []
    rows = 0
    for _, _, pair in comparison.pairs():
        (names if rows < BATCH_ROWS else others).append(pair.payload_type)
        rows += size_of(pair.a + pair.b)
    compared = _only(comparison, *names)
    found = [summary for batch in summaries(compared) for summary in batch] if names else []
    effects = [_effect(comparison, summary) for summary in found[:MAX_TYPES]]
    return {"effects": effects, "more_effects": found[MAX_TYPES:], "not_compared": others, "drawing_width": WIDTH}


def _only(comparison: Comparison, *names: str) -> Comparison:
    return replace(comparison, a=comparison.a.only(names), b=comparison.b.only(names))


def _effect(comparison: Comparison, summary: TypeSummary) -> TypeEffect:
    part = _only(comparison, summary.payload_type)
    lists = [side.lists.get(summary.payload_type, ()) for side in (part.a, part.b)]
    interval = interval_between(summary.first[0], summary.last[1])
    axis = Axis.of(_window(interval, *lists), WIDTH)
    before, after = (lane(side[0], axis) if side else NO_LANE for side in lists)
    marks = differing(replace(part, window=axis.window), axis)
    removed, added = (
        "".join("0" if state == "g" else mark for mark, state in zip(marks, side.states, strict=True))
        for side in (before, after)
    )
    rows = _rows(part)
    labels = json.dumps(axis.labels())
    return TypeEffect(summary.payload_type, summary.differences, rows, interval, before, after, removed, added, labels)


def _window(interval: Interval, *sides: Lists) -> Interval:
    """The affected interval, with some space at both ends. If it is open, its end is that of the IOVs in it."""
    start, end = interval.start, interval.end
    if end == AFTER_ALL:
        ends = [found.end for lists in sides if lists and (found := extent(lists, interval))]
        end = max([start, *ends])
    elif start.major == end.major:
        space = (end.minor - start.minor) // 10 + 1
        return Interval(
            Moment(start.major, max(start.minor - space, 0)), Moment(end.major, min(end.minor + space, OPEN))
        )
    space = (end.major - start.major) // 10 + 1
    return Interval(Moment(max(start.major - space, 0), 0), min(Moment(end.major + space, 0), AFTER_ALL))


def _rows(comparison: Comparison) -> list[dict[str, Any]]:
    """The first rows. All are received, because a statement that sends rows cannot be stopped without its transaction."""
    shown: list[bytes] = []
    rest = b""
    for chunk in difference_lines(comparison):
        if len(shown) < MAX_ROWS:
            *lines, rest = (rest + chunk).split(b"\n")
            shown += lines
    return [orjson.loads(line) for line in shown[:MAX_ROWS]]
