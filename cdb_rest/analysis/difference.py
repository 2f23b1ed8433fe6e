"""The differences between two states of global tags: intervals in which a strict lookup returns different payloads."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import NamedTuple

import numpy as np
from django.conf import settings

from cdb_rest import named_sql
from cdb_rest.analysis.contents import (
    Contents,
    Depths,
    Lists,
    ListVersion,
    in_batches,
    list_parameters,
    lists_of,
    parts_of,
    read_contents,
)
from cdb_rest.analysis.spans import Spans, read_rows, spans_of
from cdb_rest.exports.copy_out import stream_copy
from cdb_rest.exports.export import check_payload_types, window_values
from cdb_rest.models.payload_list import PRESENT
from cdb_rest.rules.as_of import TagState
from cdb_rest.rules.moment import Interval, Mode

ROWS = named_sql.load("differences")
LINES = named_sql.load("differences_jsonl")
NO_LISTS = (ListVersion(0, 0, 0, PRESENT),)


class Key(StrEnum):
    """When two payloads are the same: if their URLs are equal, or if their checksums are.

    A payload without a checksum is compared by its URL in both cases.
    """

    URL = "url"
    CHECKSUM = "checksum"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared: two contents, in a window, by a key."""

    a: Contents
    b: Contents
    window: Interval
    key: Key = Key.URL

    def pairs(self) -> list[tuple[Depths, int, "Pair"]]:
        """The payload types whose lists may differ, in byte order, for `in_batches`.

        Payload types that have the same lists in the same versions in both contents are left out.
        """
        names = sorted({*self.a.lists, *self.b.lists}, key=str.encode)
        pairs = [Pair(name, self.a.lists.get(name, NO_LISTS), self.b.lists.get(name, NO_LISTS)) for name in names]
        return [
            ((len(pair.a), len(pair.b)), sum(item.rows for item in pair.a + pair.b), pair)
            for pair in pairs
            if [item[:2] for item in pair.a] != [item[:2] for item in pair.b]
        ]


@dataclass(frozen=True, slots=True)
class Scope:
    """What to compare: `a` and `b`, each one tag or several, payload types or all (empty), the window, and the key."""

    a: Sequence[TagState]
    b: Sequence[TagState]
    payload_types: Collection[str]
    window: Interval
    key: Key = Key.URL

    def read(self) -> Comparison:
        """The contents of the tags. A payload type may be missing in `a` or in `b`. Raises the errors of `read_contents`."""
        a, b = read_contents(self.a), read_contents(self.b)
        if self.payload_types:
            check_payload_types(self.payload_types, {*a.lists, *b.lists})
            a, b = a.only(self.payload_types), b.only(self.payload_types)
        return Comparison(a, b, self.window, self.key)


class Pair(NamedTuple):
    """The payload lists of a payload type in both contents, or `NO_LISTS`."""

    payload_type: str
    a: Lists
    b: Lists


class TypeSummary(NamedTuple):
    """The number of differences of a payload type, and the first and the last one."""

    payload_type: str
    differences: int
    first: tuple[Decimal, Decimal]
    last: tuple[Decimal, Decimal]


def difference_lines(comparison: Comparison) -> Iterator[bytes]:
    """The differences as JSON texts, one per line, in chunks of bytes; by payload type in byte order, then by start.

    Each is maximal: neighbours with the same payloads are one. After each statement there may be an empty chunk. Raises
    `OverloadedError` or `django.db.Error`.
    """
    with closing(in_batches(comparison.pairs())) as batches:
        for depths, pairs in batches:
            with stream_copy(LINES.replace("{rows}", _rows(depths)), _parameters(comparison, pairs)) as chunks:
                yield from chunks
            yield b""


def spans(comparison: Comparison, *, each_pair: bool = False) -> Iterator[Spans]:
    """The intervals in which the payloads differ, for each payload type of `Comparison.pairs`, in this order.

    Neighbours are one interval, unless `each_pair` separates those with other payloads. Raises `django.db.Error`.
    """
    mode, by_checksum = Mode(settings.CDB_IOV_MODE), comparison.key is Key.CHECKSUM
    for _, pairs in in_batches(comparison.pairs()):
        places = [(item.id, item.rows_version) for pair in pairs for item in pair.a + pair.b]
        rows = read_rows(places, comparison.window, mode, by_checksum=by_checksum)
        for pair in pairs:
            a, b = [next(rows) for _ in pair.a], [next(rows) for _ in pair.b]
            yield Spans(pair.payload_type, *spans_of(a, b, comparison.window, each_pair=each_pair))


def summaries(comparison: Comparison) -> Iterator[list[TypeSummary]]:
    """The payload types that differ, in byte order, in lists, which may be empty; with the differences of `difference_lines`."""
    for item in spans(comparison, each_pair=True):
        yield [summary_of(item)] if len(item.since.majors) else []


def summary_of(item: Spans) -> TypeSummary:
    """The summary of a payload type that has differences, each of them separate."""
    ends = np.array([0, -1])
    first, last = zip(item.since.at(ends).listed(), item.until.at(ends).listed(), strict=True)
    return TypeSummary(
        item.payload_type,
        len(item.since.majors),
        (first[0].combined, first[1].combined),
        (last[0].combined, last[1].combined),
    )


@cache
def _rows(depths: Depths) -> str:
    a, b = depths
    rows = ROWS.replace("{lists}", lists_of({"a": a, "b": b}))
    return rows.replace("{a_parts}", parts_of("a", a)).replace("{b_parts}", parts_of("b", b))


def _parameters(comparison: Comparison, pairs: list[Pair]) -> dict[str, object]:
    lists = list_parameters(
        [pair.payload_type for pair in pairs], {"a": [pair.a for pair in pairs], "b": [pair.b for pair in pairs]}
    )
    return lists | window_values(comparison.window) | {"by_checksum": comparison.key is Key.CHECKSUM}
