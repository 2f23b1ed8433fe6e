"""Writing the files of a compiled tag from the rows that PostgreSQL sends. The memory does not grow with the number of rows."""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cdb_rest.compiled.manifest import COUNTS, LISTS, MAJORS, MINORS, OFFSETS, ROWS, FileSum, UnusableError, sum_of
from cdb_rest.compiled.records import COLUMNS, HEAD_BYTES, HEAD_TYPE, SIGNATURE, TRAILER

# Rows that are handled at once. More take more memory, and no less time.
ROWS_AT_ONCE = 16_384
# Starts that are sorted at once.
STARTS_AT_ONCE = 1_000_000
# The least number of starts in a block. More make `counts.npy` smaller, and each lookup slower.
LEAST_BLOCK = 1024

Integers = npt.NDArray[np.int64]


class Rows:
    """A file object for COPY (FORMAT binary) with the columns of sql/compile_rows.sql, which writes `rows.copy`.

    It also writes the columns of the arrays, in the order of the rows, for `write_arrays`. `note` is called with the number of
    rows after each part; it may raise an exception to end the COPY.
    """

    def __init__(self, directory: Path, note: Callable[[int], None]) -> None:
        self._note = note
        self._pieces: list[bytes] = []
        self._sum = hashlib.sha256()
        self._file = (directory / ROWS).open("wb")
        self._parts = {name: (directory / f"{name}.part").open("wb") for name in (OFFSETS, MAJORS, MINORS)}
        self._is_begun = False
        self._size = 0
        self.counts = np.zeros(0, np.int64)
        self._before = (-1, -1, -1)

    def write(self, piece: bytes) -> None:
        """Take a message of COPY: one row, with the signature before the first one; or the trailer. The driver calls it."""
        if len(self._pieces) >= ROWS_AT_ONCE:
            self._flush()
        self._pieces.append(piece)

    def finish(self) -> FileSum:
        """Write the end of the file after the last message. Raises `UnusableError` if its format is not the expected one."""
        last = self._pieces.pop() if self._pieces else b""
        if last == SIGNATURE + TRAILER:
            # There are no rows.
            self._pieces.append(SIGNATURE)
        elif last != TRAILER:
            raise UnusableError("PostgreSQL's COPY did not end as expected")
        self._flush()
        self._put(TRAILER)
        self._parts[OFFSETS].write((self._size - len(TRAILER) + HEAD_BYTES).to_bytes(8, "little"))
        self.close()
        return FileSum(self._size, self._sum.hexdigest())

    def close(self) -> None:
        """Close the files."""
        for file in (self._file, *self._parts.values()):
            file.close()

    def _flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        if not self._is_begun and pieces:
            if not pieces[0].startswith(SIGNATURE):
                raise UnusableError("PostgreSQL's COPY did not begin as expected")
            self._is_begun = True
            self._put(SIGNATURE)
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
        (begins + (self._size + HEAD_BYTES)).astype("<i8").tofile(self._parts[OFFSETS])
        majors.tofile(self._parts[MAJORS])
        minors.tofile(self._parts[MINORS])
        self._put(text)
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

    def _put(self, text: bytes) -> None:
        self._file.write(text)
        self._sum.update(text)
        self._size += len(text)


def write_arrays(directory: Path, sizes: Sequence[int]) -> tuple[int, dict[str, FileSum]]:
    """Write the arrays from what `Rows` left in the directory. `sizes` are the numbers of rows of the lists.

    Returns the size of a block, and the sums of the files. Raises `OSError`.
    """
    total, number = sum(sizes), len(sizes)
    block = max(LEAST_BLOCK, 4 * number)
    offsets = np.memmap(directory / f"{OFFSETS}.part", "<i8", "r")
    np.save(directory / OFFSETS, offsets)
    majors, minors = _part(directory, MAJORS, total), _part(directory, MINORS, total)
    # A list has at most a few million rows, but a tag may have any number of lists.
    kind = np.dtype(np.uint16 if number <= 2**16 else np.uint32)
    sorted_majors = _create(directory / MAJORS, np.dtype("<i8"), (total,))
    has_minors = any(minors[begin : begin + STARTS_AT_ONCE].any() for begin in range(0, total, STARTS_AT_ONCE))
    sorted_minors = _create(directory / MINORS, np.dtype("<i8"), (total if has_minors else 0,))
    sorted_lists = _create(directory / LISTS, kind, (total,))
    done = 0
    for part_majors, part_minors, part_lists in _in_order(majors, minors, sizes):
        end = done + len(part_majors)
        sorted_majors[done:end] = part_majors
        if has_minors:
            sorted_minors[done:end] = part_minors
        sorted_lists[done:end] = part_lists
        done = end
    counts = _create(directory / COUNTS, np.dtype("<i8"), (total // block + 1, number))
    for row in range(1, len(counts)):
        counts[row] = counts[row - 1] + np.bincount(sorted_lists[(row - 1) * block : row * block], minlength=number)
    for array in (sorted_majors, sorted_minors, sorted_lists, counts):
        array.flush()
    del offsets, majors, minors
    for name in (OFFSETS, MAJORS, MINORS):
        (directory / f"{name}.part").unlink()
    return block, {name: sum_of(directory / name) for name in (OFFSETS, MAJORS, MINORS, LISTS, COUNTS)}


def _part(directory: Path, name: str, total: int) -> Any:
    # An empty file cannot be mapped.
    return np.memmap(directory / f"{name}.part", "<i8", "r") if total else np.zeros(0, "<i8")


def _create(path: Path, kind: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """A memory-mapped array in a new file, whose space is allocated at once: a full disk would kill the process later."""
    array = np.lib.format.open_memmap(path, "w+", kind, shape)
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def _in_order(majors: Any, minors: Any, sizes: Sequence[int]) -> Any:
    """The starts of all lists in one order, with the numbers of their lists, in parts of about `STARTS_AT_ONCE`.

    The parts are separated by moments: each part has the starts after one moment and up to the next one.
    """
    firsts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(sizes, np.int64))])
    done = firsts[:-1].copy()
    for major, minor in [*_separators(majors, minors), (2**63 - 1, 2**63 - 1)]:
        ends = np.array(
            [
                first + _count_until(majors[first:last], minors[first:last], major, minor)
                for first, last in zip(done.tolist(), firsts[1:].tolist(), strict=True)
            ],
            np.int64,
        )
        slices = [slice(*one) for one in zip(done.tolist(), ends.tolist(), strict=True)]
        part_majors = np.concatenate([majors[one] for one in slices]) if slices else np.zeros(0, np.int64)
        part_minors = np.concatenate([minors[one] for one in slices]) if slices else np.zeros(0, np.int64)
        lists = np.repeat(np.arange(len(slices)), ends - done)
        order = np.lexsort((part_minors, part_majors))
        yield part_majors[order], part_minors[order], lists[order]
        done = ends


def _separators(majors: Any, minors: Any) -> list[tuple[int, int]]:
    """Moments between which there are about `STARTS_AT_ONCE` starts: quantiles of a sample."""
    parts = len(majors) // STARTS_AT_ONCE
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
