"""Where two contents differ, without the payloads: arrays of intervals, computed from the starts, ends and keys of the rows.

`cdb_rest.analysis.difference.difference_lines` has the same intervals with their payloads, which takes much longer.
"""

import io
import secrets
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.analysis.contents import window_rows
from cdb_rest.exports.export import window_values
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Mode, Moment

COLUMNS = "major_iov, minor_iov, major_iov_end, minor_iov_end, payload_url, checksum"
ROWS = named_sql.load("keyed_rows").replace("{rows}", window_rows("list.id", "list.version", COLUMNS))
# Sizes in COPY's binary format.
HEADER_BYTES, TRAILER_BYTES = 19, 2
Numbers = npt.NDArray[np.uint64]
Booleans = npt.NDArray[np.bool_]
Ranks = npt.NDArray[np.int64]


class Moments(NamedTuple):
    """An array of moments, also of `AFTER_ALL`: arrays of the same length."""

    majors: Numbers
    minors: Numbers

    def at(self, index: npt.NDArray[np.int64] | Booleans) -> "Moments":
        """Those at some positions."""
        return Moments(self.majors[index], self.minors[index])

    def listed(self) -> list[Moment]:
        """The moments as objects."""
        return list(map(Moment, self.majors.tolist(), self.minors.tolist()))


class Spans(NamedTuple):
    """The intervals of a payload type in which the payloads differ, in order, and without overlaps; maybe none."""

    payload_type: str
    since: Moments
    until: Moments


class Rows(NamedTuple):
    """The rows of a payload list that may be valid in a window, by start. Two keys are the same if the payloads are."""

    starts: Moments
    ends: Moments
    keys: Ranks


def read_numbers(statement: str, parameters: Mapping[str, object], columns: int) -> list[npt.NDArray[np.int64]]:
    """The columns of a COPY … TO STDOUT (FORMAT binary) that are all bigint and not null. Raises `django.db.Error`."""
    output = io.BytesIO()
    with connection.wrap_database_errors, connection.cursor() as cursor:
        cursor.cursor.copy_expert(cursor.cursor.mogrify(statement, parameters), output)
    # A row is the number of columns, and for each its length and its value. Source: PostgreSQL's manual, COPY.
    parts = [
        (f"{part}{place}", kind) for place in range(columns) for part, kind in (("length", ">i4"), ("value", ">i8"))
    ]
    rows = np.frombuffer(output.getbuffer()[HEADER_BYTES:-TRAILER_BYTES], np.dtype([("count", ">i2"), *parts]))
    return [rows[f"value{place}"].astype(np.int64) for place in range(columns)]


def read_rows(lists: Sequence[tuple[int, int]], window: Interval, mode: Mode, *, by_checksum: bool) -> Iterator[Rows]:
    """The rows of payload lists, given by their ids and versions. One statement. Raises `django.db.Error`."""
    parameters = window_values(window) | {
        "ids": [list_id for list_id, _ in lists],
        "versions": [version for _, version in lists],
        "by_checksum": by_checksum,
        "seed": secrets.randbits(63),
    }
    place, *numbers, keys = read_numbers(ROWS, parameters, 6)
    major, minor, major_end, minor_end = (part.astype(np.uint64) for part in numbers)
    are_open = (major_end == OPEN) & (minor_end == OPEN)
    if mode is Mode.DISCRETE:
        # The moment after the end.
        are_last = minor_end == OPEN
        major_end, minor_end = major_end + are_last, np.where(are_last, 0, minor_end + 1).astype(np.uint64)
    major_end[are_open], minor_end[are_open] = AFTER_ALL
    edges = np.searchsorted(place, np.arange(1, len(lists) + 2))
    for first, last in pairwise(edges):
        part = slice(first, last)
        yield Rows(Moments(major[part], minor[part]), Moments(major_end[part], minor_end[part]), keys[part])


def ranked(parts: Sequence[Moments]) -> tuple[Moments, list[Ranks]]:
    """All different moments of some arrays, in order, and for each array the positions of its moments there."""
    majors, minors = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if len(majors) and int(majors.max()) < 2**31 and int(minors.max()) < 2**32:
        # One number orders them, which is much faster.
        order = np.argsort(majors << np.uint64(32) | minors, kind="stable")
    else:
        order = np.lexsort((minors, majors))
    majors, minors = majors[order], minors[order]
    are_new = np.ones(len(order), np.bool_)
    are_new[1:] = (majors[1:] != majors[:-1]) | (minors[1:] != minors[:-1])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(are_new) - 1
    ends = np.cumsum([len(part.majors) for part in parts])
    return Moments(majors[are_new], minors[are_new]), np.split(ranks, ends[:-1])


def spans_of(a: Sequence[Rows], b: Sequence[Rows], window: Interval, *, each_pair: bool) -> tuple[Moments, Moments]:
    """Starts and ends of the intervals of a window in which the payloads of two sides differ.

    In each side, the first of its lists that has a valid row decides. With `each_pair`, neighbours are separate
    if their payloads differ.
    """
    lists = [*a, *b]
    edges = Moments(*(np.array(numbers, np.uint64) for numbers in zip(window.start, window.end, strict=True)))
    moments, ranks = ranked([edges, *(part for rows in lists for part in (rows.starts, rows.ends))])
    first, last = ranks[0]
    # Between two neighbouring moments, nothing changes. A slot is the number of the former one.
    slots = np.arange(first, last)
    states = [
        _state(rows.keys, starts, ends, slots)
        for rows, starts, ends in zip(lists, ranks[1::2], ranks[2::2], strict=True)
    ]
    (is_a, key_a), (is_b, key_b) = _first_valid(states[: len(a)]), _first_valid(states[len(a) :])
    differs = (is_a != is_b) | (is_a & (key_a != key_b))
    is_edge = np.ones(len(slots), np.bool_)
    is_edge[1:] = differs[1:] != differs[:-1]
    if each_pair:
        for are_same in (is_a, is_b, np.where(is_a, key_a, 0), np.where(is_b, key_b, 0)):
            is_edge[1:] |= are_same[1:] != are_same[:-1]
    begins = np.flatnonzero(is_edge)
    ends = np.append(begins[1:], len(slots))
    wanted = differs[begins]
    return moments.at(first + begins[wanted]), moments.at(first + ends[wanted])


def _state(keys: Ranks, starts: Ranks, ends: Ranks, slots: Ranks) -> tuple[Booleans, Ranks]:
    """For each slot whether the row with the latest start is valid, and its key."""
    if not len(keys):
        return np.zeros(len(slots), np.bool_), np.zeros(len(slots), np.int64)
    rows = np.searchsorted(starts, slots, "right") - 1
    return (rows >= 0) & (slots < ends[rows]), keys[rows]


def _first_valid(states: Sequence[tuple[Booleans, Ranks]]) -> tuple[Booleans, Ranks]:
    is_valid, keys = states[0]
    for also_valid, other in states[1:]:
        keys = np.where(is_valid, keys, other)
        is_valid = is_valid | also_valid
    return is_valid, keys


def union_of(spans: Sequence[Spans]) -> Spans:
    """The union of the intervals of at least one payload type; its own payload type is empty."""
    moments, ranks = ranked([part for item in spans for part in (item.since, item.until)])
    since, until = np.concatenate(ranks[::2]), np.concatenate(ranks[1::2])
    order = np.argsort(since, kind="stable")
    since, until = since[order], np.maximum.accumulate(until[order])
    is_first = np.ones(len(since), np.bool_)
    is_first[1:] = since[1:] > until[:-1]
    is_last = np.append(is_first[1:], True)[: len(since)]
    return Spans("", moments.at(since[is_first]), moments.at(until[is_last]))
