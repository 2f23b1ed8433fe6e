"""Lanes of a timeline: what is valid where in a payload list, in pixels.

Only the rows of the window are read. For each pixel, a browser gets a character for the state and one for the changes. A gap is
never lost: a pixel that contains any part of one says so. Before its first row, a list has no gaps.
"""

from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from django.conf import settings

from cdb_rest import named_sql
from cdb_rest.analysis.contents import ListVersion, window_rows
from cdb_rest.analysis.spans import Spans, read_numbers
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.exports.export import window_values
from cdb_rest.rules.intervals import Booleans, Integers, Intervals, Moments
from cdb_rest.rules.moment import AFTER_ALL, EVERYTHING, OPEN, Interval, Mode, Moment
from cdb_web.axis import AnyMoments, Axis

ROWS = named_sql.load("lane_rows").replace(
    "{rows}", window_rows("%(list)s", "%(version)s", "major_iov, minor_iov, major_iov_end, minor_iov_end")
)
EXTENT = named_sql.load("lane_extent")
FOLLOWING = named_sql.load("lane_following")
GAP, PARTLY, VALID, OUTSIDE = b"gpvo"
BY_END, BY_NEXT = b"en"
# Numbers of changes from 256 on look the same.
MAX_CHANGE_DIGIT = 9


class Lane(NamedTuple):
    """What a payload list has at each pixel, one character each.

    - `states`: `v`, a payload is valid everywhere; `g`, nowhere; `p`, not everywhere; `o`, it is before the first row, or after
      the end of the last one and of the tag. Of a pixel that is partly outside, only the rest counts.
    - `changes`: how many rows start there: 0, or the number of binary digits of their number, at most 9.
    - `ends`: `e`, a row ends there at its own end; `n`, rows end only because the next ones start; 0, none ends.

    `is_open` says whether the last row of the list is valid at the end of the window, and has no end.
    """

    states: str
    changes: str
    ends: str = ""
    is_open: bool = False


def extent(lists: Sequence[ListVersion], window: Interval = EVERYTHING) -> Interval | None:
    """The part of the window from the first start of a row to the last start or end, None if no row starts there.

    Open ends are not counted. A last start is in the part, so the part is never empty. Raises `django.db.Error`.
    """
    parameters = window_values(window) | {
        "lists": [payload_list.id for payload_list in lists],
        "versions": [payload_list.rows_version for payload_list in lists],
    }
    [(first, last, end)] = fetch_all(EXTENT, parameters)
    if first is None:
        return None
    start, stop = Moment.from_combined(first), Moment.from_combined(max(last, end or 0))
    if end is None or last >= end:
        stop = next_moment(stop)
    return Interval(start, min(window.end, stop))


def with_space(part: Interval, window: Interval | None = None) -> Interval:
    """A part widened by 5 % at both ends, but not beyond the window; without a window, only at its end.

    The space shows open rows, and gaps at the ends of the window.
    """
    axis = Axis.of(part, 1)
    share = max(0.05, 1 / (axis.last - axis.first))
    window = window or Interval(part.start, AFTER_ALL)
    start, end = axis.part(-share, 1).window.start, axis.part(0, 1 + share).window.end
    return Interval(max(start, window.start), min(end, window.end))


def next_moment(moment: Moment) -> Moment:
    """The moment after another one."""
    return Moment(moment.major + 1, 0) if moment.minor >= OPEN else Moment(moment.major, moment.minor + 1)


def last_end(payload_list: ListVersion, moment: Moment) -> Moment:
    """The end of the last row that starts at a moment or before, which may be after the moment.

    It is the first of all moments if there is no such row, and `AFTER_ALL` if the row is open. Raises `django.db.Error`.
    """
    starts, intervals = _read(payload_list, Interval(moment, next_moment(moment)))
    if not len(starts):
        return EVERYTHING.start
    if intervals.are_open[-1]:
        return AFTER_ALL
    end = _later(intervals.ends, starts)
    return Moment(int(end.majors[-1]), int(end.minors[-1]))


def lane(payload_list: ListVersion, axis: Axis, until: Moment = AFTER_ALL) -> Lane:
    """The lane of a payload list. After the end of its last row, there is a gap up to `until`. Raises `django.db.Error`."""
    window, width = axis.window, axis.width
    starts, intervals = _read(payload_list, window)
    if not len(starts):
        return Lane("o" * width, "0" * width, "0" * width)
    parameters = {"list": payload_list.id, "version": payload_list.rows_version} | window_values(window)
    [(following,)] = fetch_all(FOLLOWING, parameters)
    gaps = _gaps(axis, starts, intervals, until if following is None else AFTER_ALL)
    partly, fully, outside = (_covered(width, *edges) for edges in gaps)
    states = np.select([fully, partly, outside], [GAP, PARTLY, OUTSIDE], VALID).astype(np.uint8)
    # The first row may start before the window.
    pixels = _pixels(axis, starts)[_are_not_before(starts, window.start)]
    counts = np.bincount(pixels, minlength=width)
    changes = np.minimum(np.ceil(np.log2(counts + 1)), MAX_CHANGE_DIGIT).astype(np.uint8) + ord("0")
    is_open = following is None and bool(intervals.are_open[-1])
    ends = _ends(axis, starts, intervals)
    return Lane(states.tobytes().decode(), changes.tobytes().decode(), ends.tobytes().decode(), is_open)


def _ends(axis: Axis, starts: Moments, intervals: Intervals) -> npt.NDArray[np.uint8]:
    """The characters for `Lane.ends`."""
    window = axis.window
    next_starts = Moments(starts.majors[1:], starts.minors[1:])
    by_next = intervals.are_open[:-1] | intervals.ends[np.arange(len(next_starts))].are_after(next_starts)
    by_end = ~(intervals.are_open | np.append(by_next, False))
    by_end &= intervals.ends.are_after(window.start) & ~intervals.ends.are_after(window.end)
    found = np.full(axis.width, ord("0"), np.uint8)
    found[_pixels(axis, next_starts[by_next])] = BY_NEXT
    found[_pixels(axis, intervals.ends[by_end])] = BY_END
    return found


def _pixels(axis: Axis, moments: AnyMoments) -> Integers:
    """The pixels that contain moments, for those in the window."""
    return np.minimum(axis.positions(moments)[0], axis.width - 1).astype(np.int64)


def _edges(axis: Axis, moments: AnyMoments) -> Integers:
    """The first edges of pixels at or after moments."""
    return np.ceil(axis.positions(moments)[1]).astype(np.int64)


def differing(items: Iterable[Spans], axis: Axis) -> str:
    """For each pixel one character: 1 if the payloads differ anywhere in it, otherwise 0.

    The intervals must be in the window of the axis; only the last one may be longer.
    """
    found = np.zeros(axis.width, np.bool_)
    for item in items:
        firsts = _pixels(axis, item.since)
        found |= _covered(axis.width, firsts, np.maximum(_edges(axis, item.until), firsts + 1))
    return (found.astype(np.uint8) + ord("0")).tobytes().decode()


def _read(payload_list: ListVersion, window: Interval) -> tuple[Moments, Intervals]:
    """The starts and the intervals of the rows that may be valid in the window, by start."""
    parameters = window_values(window) | {"list": payload_list.id, "version": payload_list.rows_version}
    major, minor, major_end, minor_end = read_numbers(ROWS, parameters, 4)
    starts = Moments(major, minor)
    return starts, Intervals.from_wire(starts, Moments(major_end, minor_end), Mode(settings.CDB_IOV_MODE))


def _gaps(axis: Axis, starts: Moments, intervals: Intervals, until: Moment) -> list[tuple[Integers, Integers]]:
    """First pixels, and the pixels after the last ones: of gaps with all pixels that contain a part of them, of gaps with the
    pixels that contain nothing else, and of what is outside. After the last row, what is after `until` is outside.
    """
    window = axis.window
    # Gaps begin at the end of a row, and end at the next start or with the window. An empty row ends at its start, because it
    # hides the row before it.
    begins = _later(intervals.ends, starts)
    begins = _later(begins, Moments(*(np.full(len(begins), part, np.int64) for part in window.start)))
    last = Moment(int(begins.majors[-1]), int(begins.minors[-1]))
    are_gaps = np.append(
        starts[np.arange(1, len(starts))].are_after(begins[np.arange(len(starts) - 1)]), last < window.end
    )
    are_gaps &= ~intervals.are_open
    begins_low, begins_high = axis.positions(begins)
    starts_low, starts_high = axis.positions(starts)
    ends_low, ends_high = (np.append(part[1:], axis.width) for part in (starts_low, starts_high))
    outside = [(0, int(starts_low[0]))]
    if until < window.end and are_gaps[-1]:
        # In the pixel in which the gap ends, nothing else is valid.
        end = ceil(axis.positions(Moments(*(np.array([part], np.int64) for part in until)))[1][0])
        outside.append((max(ceil(begins_high[-1]), end), axis.width))
        ends_low[-1] = ends_high[-1] = end
        are_gaps[-1] = last < until
    begins_low, begins_high, ends_low, ends_high = (
        part[are_gaps] for part in (begins_low, begins_high, ends_low, ends_high)
    )
    first = np.minimum(begins_low.astype(np.int64), axis.width - 1)
    partly = first, np.maximum(np.ceil(ends_high).astype(np.int64), first + 1)
    fully = np.ceil(begins_high).astype(np.int64), ends_low.astype(np.int64)
    return [partly, fully, (np.array([part[0] for part in outside]), np.array([part[1] for part in outside]))]


def _later(moments: Moments, others: Moments) -> Moments:
    """The later one of the moments at each position."""
    are_later = others.are_after(moments)
    return Moments(
        np.where(are_later, others.majors, moments.majors), np.where(are_later, others.minors, moments.minors)
    )


def _are_not_before(moments: Moments, moment: Moment) -> Booleans:
    same: Booleans = (moments.majors == moment.major) & (moments.minors == moment.minor)
    return moments.are_after(moment) | same


def _covered(width: int, firsts: Integers, lasts: Integers) -> Booleans:
    """Which pixels are in one of the ranges from `firsts` up to `lasts`, exclusive. A range may be empty."""
    are_ranges = firsts < lasts
    edges = np.zeros(width + 1, np.int64)
    np.add.at(edges, firsts[are_ranges], 1)
    np.add.at(edges, lasts[are_ranges], -1)
    covered: Booleans = edges.cumsum()[:width] > 0
    return covered
