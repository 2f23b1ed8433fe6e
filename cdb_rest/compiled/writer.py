"""Writing the files of a compiled tag from the rows that PostgreSQL sends. The memory does not grow with the number of rows."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cdb_rest.compiled.manifest import (
    COUNTS,
    LISTS,
    MAJORS,
    MINORS,
    OFFSETS,
    PLACES,
    ROWS,
    FileSum,
    UnusableError,
    sum_of,
)
from cdb_rest.compiled.records import COLUMNS, HEAD_BYTES, HEAD_TYPE, SIGNATURE, TRAILER

# Rows that are handled at once. More take more memory, and no less time.
ROWS_AT_ONCE = 16_384
# Starts that are sorted at once.
STARTS_AT_ONCE = 1_000_000
# Bytes of records that are sorted at once.
BYTES_AT_ONCE = 2**26
# The least number of starts in a block. More make `counts.npy` smaller, and each lookup slower.
LEAST_BLOCK = 1024

Integers = npt.NDArray[np.int64]


class Rows:
    """A file object for COPY (FORMAT binary) with the columns of sql/compile_rows.sql, which collects the records of the rows.

    It writes them, where they begin, and their starts to files of the directory, list by list, for `write_files`. `note` is
    called with the number of rows after each part; it may raise an exception to end the COPY.
    """

    def __init__(self, directory: Path, note: Callable[[int], None]) -> None:
        self._note = note
        self._pieces: list[bytes] = []
        self._parts = {name: (directory / f"{name}.part").open("wb") for name in (ROWS, OFFSETS, MAJORS, MINORS)}
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


class _Records:
    """The file `rows.copy`, to which records are appended; `file_sum` is its size and digest so far."""

    def __init__(self, directory: Path) -> None:
        self._file = (directory / ROWS).open("wb")
        self._digest = hashlib.sha256()
        self._size = 0
        self.append(SIGNATURE)

    def append(self, text: bytes) -> int:
        """Append records; returns where they begin."""
        begin = self._size
        self._file.write(text)
        self._digest.update(text)
        self._size += len(text)
        return begin

    def close(self) -> FileSum:
        """Write the end of the file, and return its sum."""
        self.append(TRAILER)
        self._file.close()
        return FileSum(self._size, self._digest.hexdigest())


def write_files(directory: Path, sizes: Sequence[int], pause: Callable[[], None]) -> tuple[int, dict[str, FileSum]]:
    """Write the files of a compiled tag from what `Rows` left in the directory. `sizes` are the numbers of rows of the lists.

    `pause` is called after each part. Returns the size of a block, and the sums of the files. Raises `OSError`.
    """
    total, number = sum(sizes), len(sizes)
    block = max(LEAST_BLOCK, 4 * number)
    begins = np.memmap(directory / f"{OFFSETS}.part", "<i8", "r")
    majors, minors = _part(directory, MAJORS, total), _part(directory, MINORS, total)
    # A list has at most a few million rows, but a tag may have any number of lists.
    kind = np.dtype(np.uint16 if number <= 2**16 else np.uint32)
    has_minors = any(minors[begin : begin + STARTS_AT_ONCE].any() for begin in range(0, total, STARTS_AT_ONCE))
    arrays = {
        OFFSETS: _create(directory / OFFSETS, np.dtype("<i8"), (total + 1,)),
        MAJORS: _create(directory / MAJORS, np.dtype("<i8"), (total,)),
        # Many tags use only the major number.
        MINORS: _create(directory / MINORS, np.dtype("<i8"), (total if has_minors else 0,)),
        LISTS: _create(directory / LISTS, kind, (total,)),
        COUNTS: _create(directory / COUNTS, np.dtype("<i8"), (total // block + 1, number)),
        PLACES: _create(directory / PLACES, np.dtype("<i8" if total >= 2**32 else "<u4"), (total,)),
    }
    records, done, text = _Records(directory), 0, memoryview(b"")
    with (directory / f"{ROWS}.part").open("rb") as unsorted:
        for slices in _in_parts(begins, majors, minors, sizes):
            numbers = np.concatenate([np.arange(*one) for one in slices])
            part_majors, part_minors, part_lists = majors[numbers], minors[numbers], np.repeat(*_lengths(slices))
            order = np.lexsort((part_minors, part_majors))
            now = slice(done, done + len(numbers))
            arrays[MAJORS][now] = part_majors[order]
            if has_minors:
                arrays[MINORS][now] = part_minors[order]
            arrays[LISTS][now] = part_lists[order]
            arrays[PLACES][numbers[order]] = np.arange(now.start, now.stop)
            lengths = begins[numbers + 1] - begins[numbers]
            ends = np.cumsum(lengths)
            # Memory that is used again needs no new pages, which take as much time as reading.
            text = text if len(text) >= ends[-1] else memoryview(bytearray(int(ends[-1])))
            _read_lists(unsorted, [begins[list(one)].tolist() for one in slices], text)
            for chosen in np.array_split(order, len(order) // ROWS_AT_ONCE + 1):
                pieces = zip((ends - lengths)[chosen].tolist(), ends[chosen].tolist(), strict=True)
                begin = records.append(b"".join([text[first:last] for first, last in pieces]))
                offsets = begin + HEAD_BYTES + np.cumsum(lengths[chosen]) - lengths[chosen]
                arrays[OFFSETS][done : done + len(chosen)] = offsets
                done += len(chosen)
                pause()
    rows = records.close()
    arrays[OFFSETS][total] = rows.size - len(TRAILER) + HEAD_BYTES
    counts = arrays[COUNTS]
    for row in range(1, len(counts)):
        counts[row] = counts[row - 1] + np.bincount(arrays[LISTS][(row - 1) * block : row * block], minlength=number)
    for array in arrays.values():
        array.flush()
    del begins, majors, minors
    for name in (ROWS, OFFSETS, MAJORS, MINORS):
        (directory / f"{name}.part").unlink()
    return block, {ROWS: rows, **{name: sum_of(directory / name) for name in arrays}}


def _part(directory: Path, name: str, total: int) -> Any:
    # An empty file cannot be mapped.
    return np.memmap(directory / f"{name}.part", "<i8", "r") if total else np.zeros(0, "<i8")


def _create(path: Path, kind: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """A memory-mapped array in a new file, whose space is allocated at once: a full disk would kill the process later."""
    array = np.lib.format.open_memmap(path, "w+", kind, shape)
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def _in_parts(begins: Any, majors: Any, minors: Any, sizes: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """The rows in parts that are separated by moments: for each list, the first row of the part and the one after its last.

    Each part has the starts after one moment and up to the next one: about `STARTS_AT_ONCE`, or records of `BYTES_AT_ONCE`.
    """
    firsts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(sizes, np.int64))]).tolist()
    done, lasts = firsts[:-1], firsts[1:]
    parts = max(len(majors) // STARTS_AT_ONCE, int(begins[-1]) // BYTES_AT_ONCE)
    for moment in [*_separators(majors, minors, parts), (2**63 - 1, 2**63 - 1)]:
        ends = [
            first + _count_until(majors[first:last], minors[first:last], *moment)
            for first, last in zip(done, lasts, strict=True)
        ]
        if ends != done:
            yield list(zip(done, ends, strict=True))
        done = ends


def _lengths(slices: Sequence[tuple[int, int]]) -> tuple[Integers, Integers]:
    """The numbers of the lists, and of their rows in a part."""
    return np.arange(len(slices)), np.array([end - begin for begin, end in slices], np.int64)


def _read_lists(file: BufferedReader, ranges: Sequence[tuple[int, int]], text: memoryview) -> None:
    """Read ranges of a file, one after the other, into the beginning of `text`."""
    done = 0
    for begin, end in ranges:
        file.seek(begin)
        done += file.readinto(text[done : done + end - begin])


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


class Pace:
    """Limits the work of this process to a share of a core, by sleeping: 1 is no limit."""

    def __init__(self, share: float) -> None:
        self._share = share
        # CPU time, because a process with the lowest priority waits for the CPU anyway.
        self._begin = time.process_time()

    def pause(self) -> None:
        """Sleep in proportion to the CPU time since the last pause."""
        if self._share < 1:
            time.sleep((time.process_time() - self._begin) * (1 / self._share - 1))
            self._begin = time.process_time()
