"""What is known of a global tag in one state: the rows of a lookup in stretches of moments."""

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from cdb_client.moments import AFTER_ALL, FIRST, OPEN, Moment
from cdb_client.sources import Row

# A smaller stretch is stored without compression, which takes longer than to read it.
COMPRESSED_BYTES = 100_000


def pack(data: bytes) -> bytes:
    """Bytes to store, with a checksum."""
    if len(data) > COMPRESSED_BYTES:
        return b"z" + zlib.compress(data, 1)
    return b"%08x" % zlib.crc32(data) + data


def unpack(packed: bytes) -> bytes:
    """The inverse of `pack`. Raises `ValueError` if the bytes are damaged."""
    if packed[:1] == b"z":
        try:
            return zlib.decompress(packed[1:])
        except zlib.error as error:
            raise ValueError(str(error)) from None
    if int(packed[:8], 16) != zlib.crc32(packed[8:]):
        raise ValueError("a checksum is wrong")
    return packed[8:]


@dataclass(frozen=True)
class Stretch:
    """All rows that lookups return at the moments from `since` (inclusive) to `until` (exclusive).

    `base` are the rows of the lookup at `since`, and `changes` those that start later, ordered by payload type, then by start.
    `changes` may also have rows of `base` again.
    """

    since: Moment
    until: Moment
    base: Sequence[Row]
    changes: Sequence[Row] = ()
    # `base` as JSON, if it has come as JSON.
    body: bytes = field(default=b"", repr=False, compare=False)

    @cached_property
    def base_by_type(self) -> Mapping[str, Row]:
        """For each payload type its row of `base`."""
        return {row[0]: row for row in self.base}

    @cached_property
    def changes_by_type(self) -> Mapping[str, tuple[list[tuple[int, int]], list[Row]]]:
        """For each payload type the starts of its rows of `changes`, and the rows."""
        found: dict[str, tuple[list[tuple[int, int]], list[Row]]] = {}
        for row in self.changes:
            starts, rows = found.setdefault(row[0], ([], []))
            starts.append((row[4], row[5]))
            rows.append(row)
        return found

    def rows_at(self, moment: Moment) -> Mapping[str, Row]:
        """The row of each payload type at a moment of the stretch."""
        return _Rows(self, moment)

    def encode(self, version: str) -> bytes:
        """The stretch of this version of a tag as bytes, with a checksum."""
        base = self.body or json.dumps(self.base).encode()
        header = json.dumps([version, self.since, self.until, len(base)]).encode()
        data = b"".join((header, b"\n", base, json.dumps(self.changes).encode()))
        return pack(data)

    @classmethod
    def decode(cls, data: bytes) -> tuple[str, "Stretch"]:
        """The version and the stretch. Raises `ValueError` if the bytes are damaged."""
        header, _, rest = unpack(data).partition(b"\n")
        version, since, until, size = json.loads(header)
        return version, cls(Moment(*since), Moment(*until), json.loads(rest[:size]), json.loads(rest[size:]))


class _Rows(Mapping[str, Row]):
    """The rows at a moment, which are found when they are asked for."""

    __slots__ = ("_moment", "_stretch")

    def __init__(self, stretch: Stretch, moment: Moment) -> None:
        self._stretch, self._moment = stretch, moment

    def get(self, payload_type: str, default: Any = None) -> Any:
        changes = self._stretch.changes_by_type.get(payload_type)
        if changes and (place := bisect_right(changes[0], self._moment)):
            return changes[1][place - 1]
        return self._stretch.base_by_type.get(payload_type, default)

    def __getitem__(self, payload_type: str) -> Row:
        row: Row | None = self.get(payload_type)
        if row is None:
            raise KeyError(payload_type)
        return row

    def __iter__(self) -> Iterator[str]:
        names = self._stretch.base_by_type.keys() | self._stretch.changes_by_type.keys()
        return (name for name in names if self.get(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Stretches:
    """Stretches without overlaps, by their starts. Several threads may read them while one adds to them."""

    def __init__(self) -> None:
        self._index: tuple[list[Moment], list[Stretch]] = ([], [])

    def at(self, moment: Moment) -> Stretch | None:
        """The stretch with this moment."""
        starts, stretches = self._index
        place = bisect_right(starts, moment)
        if place and moment < stretches[place - 1].until:
            return stretches[place - 1]
        return None

    def gap(self, moment: Moment) -> tuple[Moment, Moment]:
        """The moments around one that is in no stretch: from the end of a stretch to the start of the next one."""
        starts, stretches = self._index
        place = bisect_right(starts, moment)
        return (stretches[place - 1].until if place else FIRST), (starts[place] if place < len(starts) else AFTER_ALL)

    def bounded(self) -> Stretch | None:
        """A stretch that ends, if there is one."""
        return next((stretch for stretch in self._index[1] if stretch.until < OPEN), None)

    def ending_at(self, moment: Moment) -> Stretch | None:
        """The stretch that ends at a moment."""
        starts, stretches = self._index
        place = bisect_right(starts, moment)
        return stretches[place - 1] if place and stretches[place - 1].until == moment else None

    def add(self, new: Stretch) -> None:
        """Add a stretch; others lose what they have in common with it."""
        kept = [new]
        for old in self._index[1]:
            if old.since < new.since:
                kept.append(replace(old, until=min(old.until, new.since)))
            if old.until > new.until:
                # Rows that are valid at its start are still found, because they are found by their own starts.
                kept.append(replace(old, since=max(old.since, new.until)))
        kept.sort(key=lambda stretch: stretch.since)
        self._index = ([stretch.since for stretch in kept], kept)
