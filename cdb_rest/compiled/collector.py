"""Collecting the rows of a compiled tag: from PostgreSQL's COPY to unsorted files, and reading these in parts by start."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cdb_rest.compiled.manifest import MAJORS, MINORS, OFFSETS, ROWS, UnusableError
from cdb_rest.compiled.records import COLUMNS, HEAD_BYTES, HEAD_TYPE, SIGNATURE, TRAILER

# Rows that are handled at once. More take more memory, and no less time.
ROWS_AT_ONCE = 16_384
# Starts that are sorted at once.
STARTS_AT_ONCE = 1_000_000
# Bytes of records that are sorted at once.
BYTES_AT_ONCE = 2**26

Integers = npt.NDArray[np.int64]
# For each list, the number of its first row of a part, and of the one after its last.
Slices = list[tuple[int, int]]


def _path(directory: Path, name: str) -> Path:
    return directory / f"{name}.part"


class Rows:
    """A file object for COPY (FORMAT binary) with the columns of sql/compile_rows.sql, which collects the records of the rows.

    It writes them, where they begin, and their starts to files of the directory, list by list, for `CollectedRows`. `note` is
    called with the number of rows after each part; it may raise an exception to end the COPY.
    """

    def __init__(self, directory: Path, note: Callable[[int], None]) -> None:
        self._note = note
        self._pieces: list[bytes] = []
        self._parts = {name: _path(directory, name).open("wb") for name in (ROWS, OFFSETS, MAJORS, MINORS)}
        self._is_begun = False
        self._size = 0
        self.counts = np.zeros(0, np.int64)
        self._before = (-1, -1, -1)

    def write(self, piece: bytes) -> None:
        """Take a message of COPY: one row, with the signature before the first one; or the trailer. The driver calls it."""
        if len(self._pieces) >= ROWS_AT_ONCE:
            self._flush()
        self._pieces.append(piece)

    def finish(self) -> None:
        """Write what is left after the last message. Raises `UnusableError` if its format is not the expected one."""
        last = self._pieces.pop() if self._pieces else b""
        if last == SIGNATURE + TRAILER:
            # There are no rows.
            self._pieces.append(SIGNATURE)
        elif last != TRAILER:
            raise UnusableError("PostgreSQL's COPY did not end as expected")
        self._flush()
        self._parts[OFFSETS].write(self._size.to_bytes(8, "little"))
        self.close()

    def close(self) -> None:
        """Close the files."""
        for file in self._parts.values():
            file.close()

    def _flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        if not self._is_begun and pieces:
            if not pieces[0].startswith(SIGNATURE):
                raise UnusableError("PostgreSQL's COPY did not begin as expected")
            self._is_begun = True
            pieces[0] = pieces[0][len(SIGNATURE) :]
            if not pieces[0]:
                del pieces[0]
        if not pieces:
            return
        text = b"".join(pieces)
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        begins = np.cumsum(lengths) - lengths
        if int(lengths.min()) < HEAD_BYTES:
            raise UnusableError("a record of PostgreSQL's COPY is too short")
        heads = np.frombuffer(text, np.uint8)[begins[:, None] + np.arange(HEAD_BYTES)].view(HEAD_TYPE)[:, 0]
        lists = heads["list"].astype(np.int64)
        majors, minors = heads["major"].astype("<i8"), heads["minor"].astype("<i8")
        if (heads["columns"] != COLUMNS).any() or (heads["text_length"] != lengths - HEAD_BYTES).any():
            raise UnusableError("a record of PostgreSQL's COPY does not have the expected columns")
        self._check_order(lists, majors, minors)
        self._parts[ROWS].write(text)
        (begins + self._size).astype("<i8").tofile(self._parts[OFFSETS])
        majors.tofile(self._parts[MAJORS])
        minors.tofile(self._parts[MINORS])
        self._size += len(text)
        counted = np.bincount(lists, minlength=len(self.counts))
        counted[: len(self.counts)] += self.counts
        self.counts = counted
        self._note(len(pieces))

    def _check_order(self, lists: Integers, majors: Integers, minors: Integers) -> None:
        """The statement has no ORDER BY for the whole, so that PostgreSQL does not sort it; so its order is checked here."""
        list_before, major_before, minor_before = (
            np.concatenate([[before], values[:-1]])
            for before, values in zip(self._before, (lists, majors, minors), strict=True)
        )
        later = (majors > major_before) | ((majors == major_before) & (minors > minor_before))
        if not ((lists > list_before) | ((lists == list_before) & later)).all():
            raise UnusableError("PostgreSQL's COPY did not send the rows in order")
        self._before = (int(lists[-1]), int(majors[-1]), int(minors[-1]))


class CollectedRows:
    """The rows that `Rows` left in a directory, numbered list by list. `sizes` are the numbers of rows of the lists.

    `begins` has where the record of each row begins, and after the last one the end of all; `majors` and `minors` are the
    starts. The arrays are memory-mapped.
    """

    def __init__(self, directory: Path, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.total = sum(sizes)
        self._directory = directory
        self.begins: Any = np.memmap(_path(directory, OFFSETS), "<i8", "r")
        self.majors, self.minors = self._array(MAJORS), self._array(MINORS)
        self._records = _path(directory, ROWS).open("rb")
        self._text = memoryview(b"")

    def close(self) -> None:
        """Delete the files."""
        self._records.close()
        del self.begins, self.majors, self.minors
        for name in (ROWS, OFFSETS, MAJORS, MINORS):
            _path(self._directory, name).unlink()

    def _array(self, name: str) -> Any:
        # An empty file cannot be mapped.
        return np.memmap(_path(self._directory, name), "<i8", "r") if self.total else np.zeros(0, "<i8")

    def has_minors(self) -> bool:
        """Whether a start has another minor than 0."""
        return any(self.minors[begin : begin + STARTS_AT_ONCE].any() for begin in range(0, self.total, STARTS_AT_ONCE))

    def parts(self) -> Iterator[Slices]:
        """The rows in parts that are separated by moments.

        Each part has the starts after one moment and up to the next one: about `STARTS_AT_ONCE`, or records of
        `BYTES_AT_ONCE`.
        """
        firsts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(self.sizes, np.int64))]).tolist()
        done, lasts = firsts[:-1], firsts[1:]
        parts = max(self.total // STARTS_AT_ONCE, int(self.begins[-1]) // BYTES_AT_ONCE)
        for moment in [*_separators(self.majors, self.minors, parts), (2**63 - 1, 2**63 - 1)]:
            ends = [
                first + _count_until(self.majors[first:last], self.minors[first:last], *moment)
                for first, last in zip(done, lasts, strict=True)
            ]
            if ends != done:
                yield list(zip(done, ends, strict=True))
            done = ends

    def read(self, slices: Slices) -> memoryview:
        """The records of a part, list by list; a view that is valid until the next call."""
        ranges = [self.begins[list(one)].tolist() for one in slices]
        size = sum(end - begin for begin, end in ranges)
        # Memory that is used again needs no new pages, which take as much time as reading.
        if len(self._text) < size:
            self._text = memoryview(bytearray(size))
        done = 0
        for begin, end in ranges:
            self._records.seek(begin)
            done += self._records.readinto(self._text[done : done + end - begin])
        return self._text


def _separators(majors: Any, minors: Any, parts: int) -> list[tuple[int, int]]:
    """Moments that divide the starts into about so many parts and one more: quantiles of a sample."""
    if not parts:
        return []
    step = max(1, len(majors) // (parts * 1000))
    sample = sorted(zip(majors[::step].tolist(), minors[::step].tolist(), strict=True))
    return sorted({sample[len(sample) * part // (parts + 1)] for part in range(1, parts + 1)})


def _count_until(majors: Any, minors: Any, major: int, minor: int) -> int:
    """How many of the starts, which are in order, are at or before a moment."""
    begin, end = majors.searchsorted(major, "left"), majors.searchsorted(major, "right")
    return int(begin + minors[begin:end].searchsorted(minor, "right"))
