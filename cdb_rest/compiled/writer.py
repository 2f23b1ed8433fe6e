"""Writing the files of a compiled tag: the collected rows in the order of their starts, and the arrays to find them."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cdb_rest.compiled import collector
from cdb_rest.compiled.collector import CollectedRows, Slices
from cdb_rest.compiled.manifest import COUNTS, LISTS, MAJORS, MINORS, OFFSETS, PLACES, ROWS, FileSum, sum_of
from cdb_rest.compiled.records import HEAD_BYTES, SIGNATURE, TRAILER

# The least number of starts in a block. More make `counts.npy` smaller, and each lookup slower.
LEAST_BLOCK = 1024

# The arrays of a compiled tag by the names of their files.
Arrays = dict[str, Any]


class _Records:
    """The file `rows.copy`, to which records are appended."""

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

    def finish(self) -> FileSum:
        """Write the end of the file, and return its sum."""
        self.append(TRAILER)
        self.close()
        return FileSum(self._size, self._digest.hexdigest())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def write_files(directory: Path, sizes: Sequence[int], pause: Callable[[], None]) -> tuple[int, dict[str, FileSum]]:
    """Write the files of a compiled tag from what `Rows` left in the directory. `sizes` are the numbers of rows of the lists.

    `pause` is called after each part. Returns the size of a block, and the sums of the files. Raises `OSError`.
    """
    block = max(LEAST_BLOCK, 4 * len(sizes))
    with (
        contextlib.closing(CollectedRows(directory, sizes)) as collected,
        contextlib.closing(_Records(directory)) as records,
    ):
        arrays, done = _create_arrays(directory, collected, block), 0
        for slices in collected.parts():
            done = _write_part(collected, slices, arrays, records, done, pause)
        rows = records.finish()
    arrays[OFFSETS][done] = rows.size - len(TRAILER) + HEAD_BYTES
    _write_counts(arrays, block)
    for array in arrays.values():
        array.flush()
    return block, {ROWS: rows, **{name: sum_of(directory / name) for name in arrays}}


def _create_arrays(directory: Path, collected: CollectedRows, block: int) -> Arrays:
    total, number = collected.total, len(collected.sizes)
    # A list has at most a few million rows, but a tag may have any number of lists.
    lists = np.dtype(np.uint16 if number <= 2**16 else np.uint32)
    return {
        OFFSETS: _create(directory / OFFSETS, np.dtype("<i8"), (total + 1,)),
        MAJORS: _create(directory / MAJORS, np.dtype("<i8"), (total,)),
        # Many tags use only the major number.
        MINORS: _create(directory / MINORS, np.dtype("<i8"), (total if collected.has_minors() else 0,)),
        LISTS: _create(directory / LISTS, lists, (total,)),
        COUNTS: _create(directory / COUNTS, np.dtype("<i8"), (total // block + 1, number)),
        PLACES: _create(directory / PLACES, np.dtype("<i8" if total >= 2**32 else "<u4"), (total,)),
    }


def _create(path: Path, kind: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """A memory-mapped array in a new file, whose space is allocated at once: a full disk would kill the process later."""
    array = np.lib.format.open_memmap(path, "w+", kind, shape)
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def _write_part(
    collected: CollectedRows, slices: Slices, arrays: Arrays, records: _Records, done: int, pause: Callable[[], None]
) -> int:
    """Write a part after the `done` rows before it; returns the number of rows with it."""
    numbers = np.concatenate([np.arange(*one) for one in slices])
    lists = np.repeat(np.arange(len(slices)), [last - first for first, last in slices])
    majors, minors = collected.majors[numbers], collected.minors[numbers]
    order = np.lexsort((minors, majors))
    now = slice(done, done + len(numbers))
    arrays[MAJORS][now] = majors[order]
    if len(arrays[MINORS]):
        arrays[MINORS][now] = minors[order]
    arrays[LISTS][now] = lists[order]
    arrays[PLACES][numbers[order]] = np.arange(now.start, now.stop)
    text, lengths = collected.read(slices), collected.begins[numbers + 1] - collected.begins[numbers]
    ends = np.cumsum(lengths)
    for chosen in np.array_split(order, len(order) // collector.ROWS_AT_ONCE + 1):
        pieces = zip((ends - lengths)[chosen].tolist(), ends[chosen].tolist(), strict=True)
        begin = records.append(b"".join([text[first:last] for first, last in pieces]))
        offsets = begin + HEAD_BYTES + np.cumsum(lengths[chosen]) - lengths[chosen]
        arrays[OFFSETS][done : done + len(chosen)] = offsets
        done += len(chosen)
        pause()
    return done


def _write_counts(arrays: Arrays, block: int) -> None:
    counts = arrays[COUNTS]
    for row in range(1, len(counts)):
        lists = arrays[LISTS][(row - 1) * block : row * block]
        counts[row] = counts[row - 1] + np.bincount(lists, minlength=counts.shape[1])
