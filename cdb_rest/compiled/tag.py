"""Reading a compiled tag: the row of each payload list at a moment, and the window of the answer."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cdb_rest.compiled.directory import OpenFiles
from cdb_rest.compiled.intervals import Booleans, Integers, Intervals, Moments, joined
from cdb_rest.compiled.manifest import COUNTS, LISTS, MAJORS, MINORS, OFFSETS, PLACES, ROWS, Manifest
from cdb_rest.rules.moment import Mode, Moment
from cdb_rest.rules.status import Status

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
# The number of columns; then each column with its length in front: the number of the list, the start and the end of the IOV; and
# the length of the row's JSON array, which is the last column.
COLUMNS = 6
HEAD_TYPE = np.dtype(
    [
        ("columns", ">i2"),
        ("list_length", ">i4"),
        ("list", ">i4"),
        ("major_length", ">i4"),
        ("major", ">i8"),
        ("minor_length", ">i4"),
        ("minor", ">i8"),
        ("major_end_length", ">i4"),
        ("major_end", ">i8"),
        ("minor_end_length", ">i4"),
        ("minor_end", ">i8"),
        ("text_length", ">i4"),
    ]
)
HEAD_BYTES = HEAD_TYPE.itemsize
# The elements of a row's JSON array, as they are written.
ELEMENT = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+|null')
ELEMENTS = 9
# As json_build_object writes it.
OBJECT = (
    b'{"payload_type_name" : %b, "payload_url" : %b, "checksum" : %b, "size" : %b, "major_iov" : %b, "minor_iov" : %b, '
    b'"major_iov_end" : %b, "minor_iov_end" : %b, "revision" : %b}'
)


def as_object(row: bytes) -> bytes:
    """A row of a lookup's answer as a JSON object, from the same row as a JSON array, byte for byte as PostgreSQL writes it."""
    elements = row[1:-1].split(b", ")
    if len(elements) != ELEMENTS:
        # A text contains the separator.
        elements = ELEMENT.findall(row)
    return OBJECT % tuple(elements)


class Query(Protocol):
    """What a lookup asks for (`cdb_rest.lookup.model.LookupQuery`)."""

    @property
    def moment(self) -> Moment: ...

    @property
    def only_valid(self) -> bool: ...

    @property
    def as_objects(self) -> bool: ...

    @property
    def mode(self) -> Mode: ...


# The positions of the bytes of a record before its JSON array.
HEAD_RANGE = np.arange(HEAD_BYTES)


class Changes(NamedTuple):
    """The ids of the lists that have changed in a version of a tag since it was compiled, and which compiled lists are the same.

    A compiled list that is not the same has changed or is gone.
    """

    version: str
    lists: list[int]
    same: Booleans


class CompiledTag:
    """An open compiled tag: memory-mapped files, which all processes of a host share. Threads may share it.

    Its lists have the order of `manifest.lists`, which is that of an answer, and are identified by their position there. The
    constructor trusts the contents of the files, which must have been verified; it raises `UnusableError` if a file has another
    size than expected, or `OSError`.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self.positions = {one.id: position for position, one in enumerate(manifest.lists)}
        self.by_name = {one.payload_type: position for position, one in enumerate(manifest.lists)}
        # The lists whose rows were written by transactions that may have been open, and these transactions.
        self.young = {
            payload_list.id: payload_list.written_by
            for payload_list in manifest.lists
            if payload_list.written_by is not None
        }
        self.all = np.arange(len(manifest.lists))
        # Whether the database has said to this process that the files were made from it.
        self.is_confirmed = False
        # Whether nearly all lists have changed since. Then the database answers for the present.
        self.is_outdated = False
        # The changes in the version that the last lookup has found, if there were some.
        self.changes: Changes | None = None
        self._sizes = np.array([payload_list.rows for payload_list in manifest.lists], np.int64)
        self._first = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._sizes)])
        self._last = self._first[:-1] - 1
        self._files = OpenFiles(path, {name: one.size for name, one in manifest.files.items()})
        self._offsets, self._majors, minors, self._lists, self._counts, self._places = (
            self._files.array(name) for name in (OFFSETS, MAJORS, MINORS, LISTS, COUNTS, PLACES)
        )
        # Many tags use only the major number. Then half of the search is left out.
        self._minors = minors if len(minors) else None
        self._rows = self._files.content(ROWS)
        self._bytes = np.frombuffer(self._rows, np.uint8)

    @property
    def may_be_unchanged(self) -> bool:
        """Whether the tag can still change, and no lookup has found that it has."""
        is_fixed = self.manifest.status == Status.FROZEN and self.is_confirmed
        return not (is_fixed or self.is_outdated) and self.changes is None

    def load(self) -> None:
        """Read all files, so that lookups do not wait for the disk. Other threads can work meanwhile. Raises `OSError`."""
        self._files.load()

    def is_intact(self) -> bool:
        """Whether the files are as they were when they were opened: not written to, truncated or deleted."""
        return self._files.are_intact()

    def starts_until(self, moment: Moment) -> Integers:
        """For each list, the number of its rows that start at or before the moment."""
        end = self._majors.searchsorted(moment.major, "right")
        if self._minors is not None:
            begin = self._majors.searchsorted(moment.major, "left")
            end = begin + self._minors[begin:end].searchsorted(moment.minor, "right")
        block = end // self.manifest.block
        counted = np.bincount(self._lists[block * self.manifest.block : end], minlength=len(self._last))
        found: Integers = self._counts[block] + counted
        return found

    def mask(self, ids: Iterable[int]) -> Booleans:
        """For each list, whether it has one of these ids. Raises `KeyError` if there is no list with an id."""
        found = np.zeros(len(self.all), np.bool_)
        found[[self.positions[list_id] for list_id in ids]] = True
        return found

    def answer(self, starts: Integers, query: Query, others: Sequence[tuple[str, bytes]] = ()) -> bytes:
        """The answer of a lookup: the rows of the lists, and `others`, which are rows with their payload types.

        `starts` is the result of `starts_until`; lists with 0 are left out.
        """
        found = np.flatnonzero(starts)
        numbers = (self._last + starts)[found]
        if query.only_valid:
            are_valid = self._intervals(numbers, query.mode).end_after(query.moment)
            found, numbers = found[are_valid], numbers[are_valid]
        # `take` is faster than an index.
        places = self._places.take(numbers)
        begins, ends = self._offsets.take(places).tolist(), (self._offsets.take(places + 1) - HEAD_BYTES).tolist()
        content = self._rows
        rows = [content[begin:end] for begin, end in zip(begins, ends, strict=True)]
        if query.as_objects:
            rows = [as_object(row) for row in rows]
        if others:
            rows = self._merged(found.tolist(), rows, others)
        return b"[" + b",".join(rows) + b"]"

    def _merged(self, positions: list[int], rows: list[bytes], others: Iterable[tuple[str, bytes]]) -> list[bytes]:
        """Rows, with the positions of their lists, and other rows, with their payload types, in the order of an answer.

        May change `positions` and `rows`.
        """
        added: list[tuple[str, bytes]] = []
        for name, row in others:
            position = self.by_name.get(name)
            place = len(rows) if position is None else bisect_left(positions, position)
            if position is None or positions[place : place + 1] == [position]:
                added.append((name, row))
            else:
                positions.insert(place, position)
                rows.insert(place, row)
        if not added:
            return rows
        types = [payload_list.payload_type for payload_list in self.manifest.lists]
        # In the order of the names' bytes, as in PostgreSQL; that of code points is the same.
        pairs = [*((types[position], row) for position, row in zip(positions, rows, strict=True)), *added]
        return [row for _, row in sorted(pairs, key=itemgetter(0))]

    def window(self, positions: Integers, starts: Integers, query: Query) -> tuple[Moment | None, Moment | None]:
        """The largest interval around the moment in which the rows of some lists are the same, as the SQL function cdb_window.

        `starts` is the result of `starts_until`. Returns since and until; None: from the beginning, to the end of time.
        """
        first, size, count = self._first[positions], self._sizes[positions], starts[positions]
        found, upcoming = first + count - 1, first + count
        if query.only_valid and query.mode is Mode.CONTINUOUS:
            # Empty rows hide what was in force and bring nothing themselves.
            self._skip_empty(found, first, size, -1)
            self._skip_empty(upcoming, first, size, 1)
        has_found, has_upcoming = found >= first, upcoming < first + size
        current = self._intervals(found[has_found], query.mode)
        later = self._starts(upcoming[has_upcoming])
        if not query.only_valid:
            return current.starts.latest(), later.earliest()
        following = (found + 1)[has_found]
        before_last = np.flatnonzero(following < (first + size)[has_found])
        current = current.cut(before_last, self._starts(following[before_last]))
        last = current.end_after(query.moment)
        since = joined([current.starts[last], current.ends[~last]])
        # Where nothing is in force, the answer holds until the next row.
        is_waiting = ~has_found
        is_waiting[has_found] = ~last
        until = joined([current.ends[last & ~current.are_open], later[is_waiting[has_upcoming]]])
        return since.latest(), until.earliest()

    def _skip_empty(self, numbers: Integers, first: Integers, size: Integers, step: int) -> None:
        """Move the numbers of rows that are empty by `step` until they are not, or until they are outside of their lists."""
        moved = np.arange(len(numbers))
        while len(moved := moved[(numbers >= first)[moved] & (numbers < first + size)[moved]]):
            moved = moved[self._intervals(numbers[moved], Mode.CONTINUOUS).are_empty()]
            numbers[moved] += step

    def _heads(self, numbers: Integers) -> npt.NDArray[Any]:
        positions = (self._offsets[self._places[numbers]] - HEAD_BYTES)[:, None] + HEAD_RANGE
        heads: npt.NDArray[Any] = self._bytes[positions].view(HEAD_TYPE)[:, 0]
        return heads

    def _starts(self, numbers: Integers) -> Moments:
        """The starts of the rows with these numbers."""
        heads = self._heads(numbers)
        return Moments(heads["major"].astype(np.int64), heads["minor"].astype(np.int64))

    def _intervals(self, numbers: Integers, mode: Mode) -> Intervals:
        """The intervals of the rows with these numbers."""
        heads = self._heads(numbers)
        majors, minors, major_ends, minor_ends = (
            heads[name].astype(np.int64) for name in ("major", "minor", "major_end", "minor_end")
        )
        return Intervals.from_wire(Moments(majors, minors), Moments(major_ends, minor_ends), mode)
