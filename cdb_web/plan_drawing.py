"""The drawing of a preview: for each payload type the lane before the write and the lane after it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from cdb_rest.analysis.contents import Lists
from cdb_rest.analysis.difference import Comparison
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Moment
from cdb_rest.writes.effects import TypeEffects
from cdb_web.axis import Axis
from cdb_web.lanes import Lane, differing, extent, lane, marked

WIDTH = 1000
MAX_DRAWN = 20
# Without a payload list, no IOV starts anywhere.
NO_LANE = Lane("o" * WIDTH, "0" * WIDTH)


@dataclass(frozen=True, slots=True)
class Drawing:
    """The lanes of a payload type before and after a write, on one axis.

    `removed` and `added` have a 1 for each pixel in which the payload changes and something is valid before it, or after it.
    `labels` are those of the axis as JSON, for a drawing of `width` pixels.
    """

    payload_type: str
    before: Lane
    after: Lane
    removed: str
    added: str
    labels: str
    width: int = WIDTH


def draw_effects(comparison: Comparison, types: Sequence[TypeEffects]) -> list[Drawing]:
    """The drawings of the first `MAX_DRAWN` payload types that change. Call it in the transaction of the preview.

    Raises `django.db.Error`.
    """
    changed = [(one, one.interval) for one in types if one.interval is not None]
    return [_draw(comparison, one, interval) for one, interval in changed[:MAX_DRAWN]]


def _draw(comparison: Comparison, effects: TypeEffects, interval: Interval) -> Drawing:
    payload_type = effects.payload_type
    a, b = comparison.a.only([payload_type]), comparison.b.only([payload_type])
    sides = [content.lists.get(payload_type, ()) for content in (a, b)]
    axis = Axis.of(_window(interval, *sides), WIDTH)
    before, after = (lane(lists[0], axis) if lists else NO_LANE for lists in sides)
    if effects.difference_count == len(effects.differences):
        changes = marked([one.interval for one in effects.differences], axis)
    else:
        changes = differing(Comparison(a, b, axis.window), axis)
    removed, added = (_marks(changes, side) for side in (before, after))
    return Drawing(payload_type, before, after, removed, added, json.dumps(axis.labels()))


def _window(interval: Interval, before: Lists, after: Lists) -> Interval:
    """The affected interval with some space. If it is open, or after all that was valid, it has the last starts, too."""
    ends = [found.end for lists in (before, after) if lists and (found := extent(lists))]
    start = min([interval.start, *ends])
    end = max([interval.start, *ends]) if interval.end == AFTER_ALL else interval.end
    if start.major == end.major and interval.end != AFTER_ALL:
        space = (end.minor - start.minor) // 10 + 1
        return Interval(
            Moment(start.major, max(start.minor - space, 0)), Moment(end.major, min(end.minor + space, OPEN))
        )
    space = (end.major - start.major) // 10 + 1
    return Interval(Moment(max(start.major - space, 0), 0), min(Moment(end.major + space, 0), AFTER_ALL))


def _marks(changes: str, side: Lane) -> str:
    """The changes where something is valid."""
    return "".join("0" if state in "go" else change for change, state in zip(changes, side.states, strict=True))
