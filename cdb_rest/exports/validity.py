"""The payload IOVs of a global tag that are valid somewhere in a window, each with the part in which it is valid."""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby, repeat
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection

from cdb_rest.exports.export import ROWS, SETTINGS, Source, window_values
from cdb_rest.history.contents import stream_rows
from cdb_rest.rules.moment import Interval, Mode, Moment


class ValidRow(NamedTuple):
    """A row by columns, those of `export_rows`, and the part of the window in which a strict lookup returns it."""

    columns: dict[str, Any]
    part: Interval


def valid_rows(source: Source, window: Interval) -> Iterator[ValidRow]:
    """The rows of a source that are valid somewhere in the window, by payload type in byte order, then by start.

    They are read with a server-side cursor, so that the memory is limited. The caller must be in the snapshot in which it
    has found the source. Raises `django.db.Error`.
    """
    mode = Mode(settings.CDB_IOV_MODE)
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS, {"milliseconds": None})
    rows = stream_rows(ROWS, window_values(window) | dict(source.values))
    row = next(rows, None)
    while row is not None:
        following = next(rows, None)
        own = _interval(row, mode)
        end = min(own.end, window.end)
        # The latest start wins, so a row is valid up to the next one of its list at most.
        if following is not None and following["payload_type"] == row["payload_type"]:
            end = min(end, _start(following))
        yield ValidRow(row, Interval(max(own.start, window.start), end))
        row = following


def overlaid(sources: Sequence[Iterable[ValidRow]]) -> Iterator[ValidRow]:
    """The rows of several global tags, of which the first one that has a valid row decides, with the parts in which they do.

    `sources` are the results of `valid_rows` for the tags, in their order. A row may come with several parts. The order of
    the result is the same. The memory is that of the rows of one payload type.
    """
    merged = heapq.merge(
        *(zip(source, repeat(place)) for place, source in enumerate(sources)),
        key=lambda pair: pair[0].columns["payload_type"].encode(),
    )
    for _, pairs in groupby(merged, key=lambda pair: pair[0].columns["payload_type"]):
        by_place: list[list[ValidRow]] = [[] for _ in sources]
        for row, place in pairs:
            by_place[place].append(row)
        yield from reduce(_overlay, by_place)


def _overlay(upper: list[ValidRow], lower: list[ValidRow]) -> list[ValidRow]:
    """All rows of `upper`, and those of `lower` at the other moments. Both are in order and without overlaps."""
    found: list[ValidRow] = []
    waiting = deque(upper)
    free = Moment(0, 0)
    for row in lower:
        free = max(free, row.part.start)
        while waiting and waiting[0].part.start < row.part.end:
            above = waiting.popleft()
            if free < above.part.start:
                found.append(ValidRow(row.columns, Interval(free, above.part.start)))
            found.append(above)
            free = max(free, above.part.end)
        if free < row.part.end:
            found.append(ValidRow(row.columns, Interval(free, row.part.end)))
    return found + list(waiting)


def _start(row: dict[str, Any]) -> Moment:
    return Moment(row["major_iov"], row["minor_iov"])


def _interval(row: dict[str, Any], mode: Mode) -> Interval:
    return Interval.from_wire(_start(row), Moment(row["major_iov_end"], row["minor_iov_end"]), mode)
