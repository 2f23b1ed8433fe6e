"""Writing the files of a compiled tag: the records of the rows in the order of their starts, and the arrays to find them."""

import hashlib
import os
from collections.abc import Callable
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
from cdb_rest.compiled.tag import COLUMNS, HEAD_BYTES, HEAD_TYPE, SIGNATURE, TRAILER

# The least number of rows in a block. More make `counts.npy` smaller, and each lookup slower.
LEAST_BLOCK = 1024
# Rows for which `places.npy` is made at once.
PLACES_AT_ONCE = 1_000_000
Integers = npt.NDArray[np.int64]


class Writer:
    """The files of a compiled tag in a directory, to which rows are appended. `lists` is the number of its lists.

    `append` and `finish` raise `OSError`, for example if the disk is full.
    """

    def __init__(self, directory: Path, lists: int) -> None:
        self._directory = directory
        self._records = (directory / ROWS).open("wb")
        self._digest = hashlib.sha256()
        self._size = 0
        # A list has at most a few million rows, but a tag may have any number of lists.
        kinds = {OFFSETS: "<i8", MAJORS: "<i8", MINORS: "<i8", LISTS: "<u2" if lists <= 2**16 else "<u4"}
        self._arrays = {name: _Array(directory / name, np.dtype(kind)) for name, kind in kinds.items()}
        self.sizes = np.zeros(lists, np.int64)
        self._last = (-1, -1)
        self._has_minors = False
        self._write(SIGNATURE)

    @property
    def total(self) -> int:
        """The number of rows so far."""
        return int(self.sizes.sum())

    def append(self, records: list[bytes]) -> None:
        """Append the rows of a part, in any order. All of them must start after those of the last part.

        Raises `UnusableError` if they do not, if two rows of a list have the same start, or if a record has another form.
        """
        if not records:
            return
        lengths = np.fromiter(map(len, records), np.int64, len(records))
        heads = _heads_of(records, lengths)
        lists = heads["list"].astype(np.int64)
        majors, minors = heads["major"].astype(np.int64), heads["minor"].astype(np.int64)
        order = np.lexsort((lists, minors, majors))
        lists, majors, minors, lengths = lists[order], majors[order], minors[order], lengths[order]
        is_same = (majors[1:] == majors[:-1]) & (minors[1:] == minors[:-1]) & (lists[1:] == lists[:-1])
        if is_same.any() or (int(majors[0]), int(minors[0])) <= self._last:
            raise UnusableError("PostgreSQL's COPY sent a row twice, or rows of another part")
        self._last = (int(majors[-1]), int(minors[-1]))
        self._has_minors |= bool(minors.any())
        offsets = self._size + HEAD_BYTES + np.cumsum(lengths) - lengths
        self._write(b"".join([records[number] for number in order.tolist()]))
        for name, values in ((OFFSETS, offsets), (MAJORS, majors), (MINORS, minors), (LISTS, lists)):
            self._arrays[name].append(values)
        self.sizes += np.bincount(lists, minlength=len(self.sizes))

    def finish(self, pause: Callable[[], None]) -> tuple[int, dict[str, FileSum]]:
        """Complete the files. Returns the size of a block, and the sums of the files. `pause` is called repeatedly."""
        self._arrays[OFFSETS].append(np.array([self._size + HEAD_BYTES]))
        self._write(TRAILER)
        if not self._has_minors:
            # Many tags use only the major number.
            self._arrays[MINORS].clear()
        self.close()
        block = max(LEAST_BLOCK, 4 * len(self.sizes))
        lists = np.load(self._directory / LISTS, mmap_mode="r", allow_pickle=False)
        self._write_counts(lists, block)
        self._write_places(lists, pause)
        sums = {ROWS: FileSum(self._size, self._digest.hexdigest())}
        return block, sums | {name: sum_of(self._directory / name) for name in (*self._arrays, COUNTS, PLACES)}

    def close(self) -> None:
        """Close the files."""
        self._records.close()
        for array in self._arrays.values():
            array.close()

    def _write(self, text: bytes) -> None:
        self._records.write(text)
        self._digest.update(text)
        self._size += len(text)

    def _write_counts(self, lists: Any, block: int) -> None:
        counts = self._create(COUNTS, np.dtype("<i8"), (self.total // block + 1, len(self.sizes)))
        for row in range(1, len(counts)):
            part = lists[(row - 1) * block : row * block]
            counts[row] = counts[row - 1] + np.bincount(part, minlength=counts.shape[1])
        counts.flush()

    def _write_places(self, lists: Any, pause: Callable[[], None]) -> None:
        places = self._create(PLACES, np.dtype("<i8" if self.total >= 2**32 else "<u4"), (self.total,))
        upcoming = np.cumsum(self.sizes) - self.sizes
        for begin in range(0, self.total, PLACES_AT_ONCE):
            part = lists[begin : begin + PLACES_AT_ONCE]
            counts = np.bincount(part, minlength=len(self.sizes))
            # The rows of each list in their order, list by list.
            order = np.argsort(part, kind="stable")
            targets = np.arange(len(order)) + np.repeat(upcoming - np.cumsum(counts) + counts, counts)
            places[targets] = begin + order
            upcoming += counts
            pause()
        places.flush()

    def _create(self, name: str, kind: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        """A memory-mapped array in a new file, whose space is allocated at once: a full disk would kill the process later."""
        path = self._directory / name
        array = np.lib.format.open_memmap(path, "w+", kind, shape)
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        return array


class _Array:
    """A one-dimensional array in a file in numpy's format, to which values are appended."""

    def __init__(self, path: Path, kind: np.dtype[Any]) -> None:
        self._file = path.open("wb")
        self._kind = kind
        self._length = 0
        self._write_header()

    def append(self, values: Integers) -> None:
        """Append values."""
        self._file.write(values.astype(self._kind).tobytes())
        self._length += len(values)

    def clear(self) -> None:
        """Remove all values."""
        self._length = 0
        self._write_header()
        self._file.truncate()

    def close(self) -> None:
        """Write the header with the length, and close the file. Only the first call has an effect."""
        if not self._file.closed:
            self._write_header()
            self._file.close()

    def _write_header(self) -> None:
        # numpy pads the header so that its size is the same for every length.
        self._file.seek(0)
        header = {"descr": np.lib.format.dtype_to_descr(self._kind), "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._file, header)


def _heads_of(records: list[bytes], lengths: Integers) -> npt.NDArray[Any]:
    """The heads of the records. Raises `UnusableError` if a record does not have the expected columns."""
    if int(lengths.min()) < HEAD_BYTES:
        raise UnusableError("a record of PostgreSQL's COPY is too short")
    heads = np.frombuffer(b"".join([record[:HEAD_BYTES] for record in records]), HEAD_TYPE)
    if (heads["columns"] != COLUMNS).any() or (heads["text_length"] != lengths - HEAD_BYTES).any():
        raise UnusableError("a record of PostgreSQL's COPY does not have the expected columns")
    return heads
