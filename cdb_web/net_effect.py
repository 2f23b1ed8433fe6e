"""The net effect of a change: by payload type, what is valid before and after it, as lanes and as intervals."""

import json
from dataclasses import dataclass, replace
from typing import Any

import orjson

from cdb_rest.analysis.contents import Lists, interval_between
from cdb_rest.analysis.difference import Comparison, difference_lines, summaries
from cdb_rest.rules.moment import AFTER_ALL, Interval
from cdb_web.axis import Axis
from cdb_web.lanes import EVERYTHING, Lane, differing, extent, lane, with_space

WIDTH = 1000
# Payload types that are drawn and have a table, and rows of a table.
MAX_TYPES = 20
MAX_ROWS = 100
# Without a payload list, no IOV starts anywhere.
NO_LANE = Lane("o" * WIDTH, "0" * WIDTH)


@dataclass(frozen=True, slots=True)
class Drawing:
    """The lanes of a payload type before and after a change, on one axis.

    `removed` and `added` have a 1 for each pixel in which another payload is valid, where one is valid before or after.
    `labels` are those of the axis as JSON, for a drawing of `width` pixels.
    """

    payload_type: str
    before: Lane
    after: Lane
    removed: str
    added: str
    labels: str
    width: int = WIDTH


@dataclass(frozen=True, slots=True)
class TypeEffect:
    """The effect on a payload type: the number of `differences`, the first ones as `rows` (members of JSON Lines)."""

    payload_type: str
    differences: int
    rows: list[dict[str, Any]]
    interval: Interval
    drawing: Drawing


def net_effect(comparison: Comparison) -> dict[str, object]:
    """The values for `net_effect.html`: the effects on the first payload types that differ, and the names of the others.

    Needs a snapshot or a transaction. Raises `django.db.Error`.
    """
    found = [one for batch in summaries(comparison) for one in batch]
    effects = []
    for one in found[:MAX_TYPES]:
        interval, part = interval_between(one.first[0], one.last[1]), _only(comparison, one.payload_type)
        drawing = draw(comparison, one.payload_type, interval)
        effects.append(
            TypeEffect(one.payload_type, one.differences, first_differences(part, MAX_ROWS)[0], interval, drawing)
        )
    return {"net_effects": effects, "more_effects": found[MAX_TYPES:]}


def draw(comparison: Comparison, payload_type: str, interval: Interval) -> Drawing:
    """The drawing of a payload type around the interval in which it differs. Raises `django.db.Error`."""
    part = _only(comparison, payload_type)
    lists = [side.lists.get(payload_type, ()) for side in (part.a, part.b)]
    axis = Axis.of(_window(interval, *lists), WIDTH)
    before, after = (lane(side[0], axis) if side else NO_LANE for side in lists)
    marks = differing(replace(part, window=axis.window), axis)
    removed, added = (
        "".join("0" if state in "go" else mark for mark, state in zip(marks, side.states, strict=True))
        for side in (before, after)
    )
    return Drawing(payload_type, before, after, removed, added, json.dumps(axis.labels()))


def _only(comparison: Comparison, *names: str) -> Comparison:
    return replace(comparison, a=comparison.a.only(names), b=comparison.b.only(names))


def _window(interval: Interval, before: Lists, after: Lists) -> Interval:
    """The affected interval with some space. If it is open, or after all that was valid, it has the last starts, too."""
    ends = [found.end for lists in (before, after) if lists and (found := extent(lists))]
    end = max([interval.start, *ends]) if interval.end == AFTER_ALL else interval.end
    return with_space(Interval(min([interval.start, *ends]), end), EVERYTHING)


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
