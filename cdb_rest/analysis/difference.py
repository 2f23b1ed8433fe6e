"""The differences between two states of global tags: intervals in which a strict lookup returns different payloads."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from cdb_rest import named_sql
from cdb_rest.analysis.contents import Contents, ListVersion, in_batches, parts_of, read_contents
from cdb_rest.connections.reads import fetch_all
from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.errors import PayloadListNotFoundError
from cdb_rest.domain.moment import Interval
from cdb_rest.history.contents import stream_rows
from cdb_rest.services.copy_out import stream_copy
from cdb_rest.services.export import window_values

ROWS = (
    named_sql.load("differences")
    .replace("{a_parts}", parts_of("pair.a_list", "pair.a_version"))
    .replace("{b_parts}", parts_of("pair.b_list", "pair.b_version"))
)
LINES = named_sql.load("differences_jsonl").replace("{rows}", ROWS)
SUMMARY = named_sql.load("differences_summary").replace("{rows}", ROWS)
# A global tag, in the present or in the past.
TagState = tuple[str, AsOf | None]
NO_LIST = ListVersion(0, 0, 0, is_present=True)


class Key(StrEnum):
    """When two payloads are the same: if their URLs are equal, or if their checksums are.

    A payload without a checksum is compared by its URL in both cases.
    """

    URL = "url"
    CHECKSUM = "checksum"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared: the contents of two tags, in a window, by a key."""

    a: Contents
    b: Contents
    window: Interval
    key: Key = Key.URL

    def pairs(self) -> list[tuple[int, "Pair"]]:
        """The payload types whose lists may differ, in byte order, with the number of rows of both lists.

        A list that is in both contents in the same version is left out.
        """
        names = sorted({*self.a.lists, *self.b.lists}, key=str.encode)
        pairs = [Pair(name, self.a.lists.get(name, NO_LIST), self.b.lists.get(name, NO_LIST)) for name in names]
        return [(pair.a.rows + pair.b.rows, pair) for pair in pairs if pair.a[:2] != pair.b[:2]]


@dataclass(frozen=True, slots=True)
class Scope:
    """Two tags to compare, one payload type or all (None), the window, and the key of the comparison."""

    a: TagState
    b: TagState
    payload_type: str | None
    window: Interval
    key: Key = Key.URL

    def read(self) -> Comparison:
        """The contents of the tags. Raises the errors of `read_contents`; a payload type may be missing in one tag."""
        contents = [read_contents(*tag, self.payload_type, may_lack_list=True) for tag in (self.a, self.b)]
        if self.payload_type is not None and not any(one.lists for one in contents):
            raise PayloadListNotFoundError(f"of type {self.payload_type} in global tag {self.a[0]} or {self.b[0]}")
        return Comparison(contents[0], contents[1], self.window, self.key)


class Pair(NamedTuple):
    """The payload lists of a payload type in the two tags, or `NO_LIST`."""

    payload_type: str
    a: ListVersion
    b: ListVersion


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
        for pairs in batches:
            with stream_copy(LINES, _parameters(comparison, pairs)) as chunks:
                yield from chunks
            yield b""


def differences(comparison: Comparison) -> Iterator[list[Difference]]:
    """The intervals in which the payloads of a payload type differ, whatever they are, in lists; at least one a batch.

    Neighbours are one interval. Otherwise as `difference_lines`.
    """
    for pairs in in_batches(comparison.pairs()):
        rows: list[Difference] = []
        for row in stream_rows(ROWS, _parameters(comparison, pairs) | {"each_pair": False}):
            rows.append(Difference(row["payload_type"], row["since"], row["until"]))
            if len(rows) >= 2000:
                yield rows
                rows = []
        yield rows


def summaries(comparison: Comparison) -> Iterator[list[TypeSummary]]:
    """The payload types that differ, in byte order, in a list for each batch. Otherwise as `difference_lines`."""
    for pairs in in_batches(comparison.pairs()):
        rows = fetch_all(SUMMARY, _parameters(comparison, pairs))
        yield [TypeSummary(row[0], row[1], (row[2], row[3]), (row[4], row[5])) for row in rows]


def _parameters(comparison: Comparison, pairs: list[Pair]) -> dict[str, object]:
    return window_values(comparison.window) | {
        "payload_types": [pair.payload_type for pair in pairs],
        "a_lists": [pair.a.id for pair in pairs],
        "a_versions": [pair.a.past_version for pair in pairs],
        "b_lists": [pair.b.id for pair in pairs],
        "b_versions": [pair.b.past_version for pair in pairs],
        "by_checksum": comparison.key is Key.CHECKSUM,
        "each_pair": True,
    }
