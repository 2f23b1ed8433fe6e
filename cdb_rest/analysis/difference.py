"""The differences between two states of global tags: intervals in which a strict lookup returns different payloads."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import NamedTuple

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
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.exports.copy_out import stream_copy
from cdb_rest.exports.export import check_payload_types, window_values
from cdb_rest.history.contents import stream_rows
from cdb_rest.models.payload_list import PRESENT
from cdb_rest.rules.as_of import TagState
from cdb_rest.rules.moment import Interval

ROWS = named_sql.load("differences")
LINES = named_sql.load("differences_jsonl")
SUMMARY = named_sql.load("differences_summary")
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


class Difference(NamedTuple):
    """An interval in which the payloads differ, as combined moments; `until` is exclusive."""

    payload_type: str
    since: Decimal
    until: Decimal


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
            with stream_copy(_around(LINES, depths), _parameters(comparison, pairs)) as chunks:
                yield from chunks
            yield b""


def differences(comparison: Comparison) -> Iterator[list[Difference]]:
    """The intervals in which the payloads of a payload type differ, whatever they are, in lists; at least one a batch.

    Neighbours are one interval. Otherwise as `difference_lines`.
    """
    for depths, pairs in in_batches(comparison.pairs()):
        rows: list[Difference] = []
        for row in stream_rows(_rows(depths), _parameters(comparison, pairs) | {"each_pair": False}):
            rows.append(Difference(row["payload_type"], row["since"], row["until"]))
            if len(rows) >= 2000:
                yield rows
                rows = []
        yield rows


def summaries(comparison: Comparison) -> Iterator[list[TypeSummary]]:
    """The payload types that differ, in byte order, in a list for each batch. Otherwise as `difference_lines`."""
    for depths, pairs in in_batches(comparison.pairs()):
        rows = fetch_all(_around(SUMMARY, depths), _parameters(comparison, pairs))
        yield [TypeSummary(row[0], row[1], (row[2], row[3]), (row[4], row[5])) for row in rows]


@cache
def _rows(depths: Depths) -> str:
    a, b = depths
    rows = ROWS.replace("{lists}", lists_of({"a": a, "b": b}))
    return rows.replace("{a_parts}", parts_of("a", a)).replace("{b_parts}", parts_of("b", b))


def _around(statement: str, depths: Depths) -> str:
    return statement.replace("{rows}", _rows(depths))


def _parameters(comparison: Comparison, pairs: list[Pair]) -> dict[str, object]:
    lists = list_parameters(
        [pair.payload_type for pair in pairs], {"a": [pair.a for pair in pairs], "b": [pair.b for pair in pairs]}
    )
    options = {"by_checksum": comparison.key is Key.CHECKSUM, "each_pair": True}
    return lists | window_values(comparison.window) | options
