"""Where most of the IOVs of payload lists start, so that a few at absurd moments do not spoil an axis."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from django.conf import settings
from django.core.cache import cache

from cdb_rest import named_sql
from cdb_rest.analysis.contents import Contents
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.rules.moment import AFTER_ALL, Interval, Mode, Moment
from cdb_web.lanes import next_moment

EDGES = named_sql.load("lane_edges")
# A start is far away if it is beyond the others, without this share of them at each side, by more than so many times their range.
FAR, RARE = 4, 0.02
# The statement reads so many starts at both sides of a list.
EDGE = 8


class Bulk(NamedTuple):
    """`window` has the starts of most IOVs and the ends near them; it is None if there are no IOVs.

    `outliers` are the other starts, in order, each with its payload type.
    """

    window: Interval | None
    outliers: list[tuple[Moment, str]]


def bulk(contents: Contents) -> Bulk:
    """The bulk of the IOVs of one global tag, which each process keeps for an hour, by state. Raises `django.db.Error`."""
    ids = hash(tuple(lists[0].id for lists in contents.lists.values()))
    key = f"bulk:{settings.CDB_IOV_MODE}:{contents.states[0].version}:{ids}"
    found: Any = cache.get_or_set(key, lambda: _bulk(contents), 3600)
    return Bulk(*found)


def _bulk(contents: Contents) -> Bulk:
    """The bulk, judged by the first and the last eight IOVs of each list, and by its size."""
    names, lists = list(contents.lists), [found[0] for found in contents.lists.values()]
    parameters = {
        "lists": [payload_list.id for payload_list in lists],
        "versions": [payload_list.rows_version for payload_list in lists],
        "inclusive": Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE,
    }
    rows = sorted((Moment.from_combined(start), place - 1, end) for place, start, end in fetch_all(EDGES, parameters))
    if not rows:
        return Bulk(None, [])
    weights: dict[Moment, float] = defaultdict(float)
    for place, payload_list in enumerate(lists):
        starts = [start for start, found, _ in rows if found == place]
        for start in starts:
            weights[start] += 1
        # The rows that are not read are between these two.
        for start in starts[EDGE - 1 : EDGE + 1] if len(starts) == 2 * EDGE else []:
            weights[start] += (payload_list.rows - 2 * EDGE) / 2
    near = _without_far(weights)
    first, last = near[0], near[-1]
    # As far beyond the last start as the first one is before it, an end is near.
    reach = Moment(2 * last.major - first.major + 1, 2 * last.minor if first.major == last.major else 0)
    ends = [Moment.from_combined(end) for start, _, end in rows if end is not None and first <= start <= last]
    end = max((end for end in ends if last < end <= reach), default=next_moment(last))
    outliers = [(start, names[place]) for start, place, _ in rows if not first <= start <= last]
    return Bulk(Interval(first, min(end, AFTER_ALL)), outliers)


def _without_far(weights: Mapping[Moment, float]) -> list[Moment]:
    """The starts in order, without those that are far from the rest."""
    starts = sorted(weights)
    while True:
        # As on an axis: the minor numbers count only if there is one major number.
        is_minor = starts[0].major == starts[-1].major
        spare = max(sum(weights[start] for start in starts) * RARE, min(3, len(starts) // 4))
        low, high = (_after(spare, order, weights)[is_minor] for order in (starts, starts[::-1]))
        far = FAR * (high - low + 1)
        near = [start for start in starts if low - far <= start[is_minor] <= high + far]
        if len(near) == len(starts):
            return near
        starts = near


def _after(spare: float, starts: list[Moment], weights: Mapping[Moment, float]) -> Moment:
    """The first one of the starts at which the sum of their weights is more than `spare`."""
    sums = accumulate(weights[start] for start in starts)
    return next(start for start, total in zip(starts, sums, strict=True) if total > spare)
