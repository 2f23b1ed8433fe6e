"""Where most of the IOVs of payload lists start, so that a few at absurd moments do not spoil an axis."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from django.conf import settings
from django.core.cache import caches

from cdb_rest import named_sql
from cdb_rest.analysis.contents import Contents, ListVersion
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Mode, Moment

EDGES = named_sql.load("lane_edges")
# A start is far away if it is beyond the others, without this share of them at each side, by more than so many times their range.
FAR, RARE = 4, 0.02
# The statement reads so many starts at both sides of a list. The rest is taken as spread evenly, in so many parts.
EDGE, PARTS = 8, 8


class Middle(NamedTuple):
    """The rows of a list that are not read: they start between two moments. `rows` is a guess of their number."""

    since: Moment
    until: Moment
    rows: int


class Bulk(NamedTuple):
    """`window` has the starts of most IOVs and the ends near them; it is None if there are no IOVs.

    `outliers` are the other starts, in order, each with its payload type.
    """

    window: Interval | None
    outliers: list[tuple[Moment, str]]


def cached_bulk(contents: Contents) -> Bulk:
    """The bulk of one global tag, which each process keeps for one hour, by state. Raises `django.db.Error`."""
    lists = {payload_type: found[0] for payload_type, found in contents.lists.items()}
    ids = hash(tuple(payload_list.id for payload_list in lists.values()))
    key = f"bulk:{settings.CDB_IOV_MODE}:{contents.states[0].version}:{ids}"
    found: Bulk | None = caches["lanes"].get(key)
    if found is None:
        found = bulk(lists)
        caches["lanes"].set(key, found)
    return found


def bulk(lists: Mapping[str, ListVersion]) -> Bulk:
    """The bulk of the IOVs, judged by the first and the last eight of each list, and by its size. Raises `django.db.Error`."""
    parameters = {
        "lists": [payload_list.id for payload_list in lists.values()],
        "versions": [payload_list.rows_version for payload_list in lists.values()],
        "inclusive": Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE,
    }
    names = list(lists)
    rows = [(Moment.from_combined(start), names[place - 1], end) for place, start, end in fetch_all(EDGES, parameters)]
    if not rows:
        return Bulk(None, [])
    by_name: dict[str, list[Moment]] = defaultdict(list)
    for start, name, _ in sorted(rows):
        by_name[name].append(start)
    middles = [
        Middle(starts[EDGE - 1], starts[EDGE], max(lists[name].rows - 2 * EDGE, 1))
        for name, starts in by_name.items()
        if len(starts) == 2 * EDGE
    ]
    near = _without_far(sorted({start for start, _, _ in rows}), middles)
    first, last = near[0], near[-1]
    # As far beyond the last start as the first one is before it, an end is near.
    reach = Moment(2 * last.major - first.major + 1, 2 * last.minor if first.major == last.major else 0)
    ends = [Moment.from_combined(end) for start, _, end in rows if end is not None and first <= start <= last]
    end = max((end for end in ends if last < end <= reach), default=Moment(last.major, last.minor + 1))
    if end.minor > OPEN:
        end = Moment(end.major + 1, 0)
    outliers = sorted((start, name) for start, name, _ in rows if not first <= start <= last)
    return Bulk(Interval(first, min(end, AFTER_ALL)), outliers)


def _without_far(starts: list[Moment], middles: list[Middle]) -> list[Moment]:
    """The starts, which are sorted, without those that are far from the rest."""
    while True:
        # As on an axis: the minor numbers count only if there is one major number.
        is_minor = starts[0].major == starts[-1].major
        weights = {start[is_minor]: 1.0 for start in starts}
        for since, until, rows in middles:
            if starts[0] <= since and until <= starts[-1]:
                first, last = since[is_minor], until[is_minor]
                for part in range(PARTS + 1):
                    number = first + (last - first) * part // PARTS
                    weights[number] = weights.get(number, 0) + rows / (PARTS + 1)
        numbers = sorted(weights)
        spare = max(sum(weights.values()) * RARE, min(3, len(numbers) // 4))
        low, high = (_after(spare, order, weights) for order in (numbers, numbers[::-1]))
        far = FAR * (high - low + 1)
        near = [start for start in starts if low - far <= start[is_minor] <= high + far]
        if len(near) == len(starts):
            return near
        starts = near


def _after(spare: float, numbers: list[int], weights: Mapping[int, float]) -> int:
    """The first one of the numbers at which the sum of their weights is more than `spare`."""
    sums = accumulate(weights[number] for number in numbers)
    return next(number for number, total in zip(numbers, sums, strict=True) if total > spare)
