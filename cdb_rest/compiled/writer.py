"""Writing a pack: the rows of payload lists, and the arrays to find them."""

import json
import zlib
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from cdb_rest.compiled.pack import END, FORMAT, UnusableError
from cdb_rest.rules.intervals import Integers

# The least number of rows in a block. More make `counts` smaller, and each lookup slower.
LEAST_BLOCK = 1024


class Writer:
    """Writes a pack to a file, list by list. Raises `OSError`, for example if the disk is full."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._checksum = 0
        self.size = 0
        self.rows = 0
        self._first = [0]
        self._offsets = [np.zeros(1, np.int64)]
        self._iovs: list[Integers] = []

    def append(self, rows: Sequence[tuple[int, int, int, int, str]]) -> None:
        """Append rows to the current list, by start: the start and the end of the IOV, and the JSON array."""
        texts = [row[4].encode() for row in rows]
        self._iovs.append(np.array([row[:4] for row in rows], np.int64).T)
        self._offsets.append(self.size + np.cumsum(np.fromiter(map(len, texts), np.int64)))
        self._emit(b"".join(texts))
        self.rows += len(rows)

    def end_list(self) -> None:
        """Begin the next list."""
        self._first.append(self.rows)

    def finish(self, **header: Any) -> None:
        """Complete the pack. The header has `database`, and in `lists` the `ListKey` of each list. Raises `UnusableError`."""
        block = max(LEAST_BLOCK, 4 * (len(self._first) - 1))
        places = []
        arrays = self._arrays(block)
        self._emit(bytes(-self.size % 8))
        for array in arrays:
            places.append((array.dtype.str, array.shape, self.size))
            self._emit(array.tobytes() + bytes(-array.nbytes % 8))
        text = json.dumps({"format": FORMAT, "block": block, "arrays": places, **header}).encode()
        self._emit(text)
        self._emit(len(text).to_bytes(8, "little"))
        self._file.write(END.pack(len(text), self._checksum)[8:])
        self.size += 4

    def _arrays(self, block: int) -> list[np.ndarray[Any, Any]]:
        """The arrays of a pack."""
        iovs = np.concatenate([np.zeros((4, 0), np.int64), *self._iovs], axis=1)
        self._iovs.clear()
        first = np.array(self._first, np.int64)
        lists = np.repeat(np.arange(len(first) - 1, dtype="<u4"), np.diff(first))
        majors, minors = iovs[0], iovs[1]
        is_later = (majors[1:] > majors[:-1]) | ((majors[1:] == majors[:-1]) & (minors[1:] > minors[:-1]))
        if not (is_later | (lists[1:] != lists[:-1])).all():
            raise UnusableError("PostgreSQL sent a row twice, or not in order")
        order = np.lexsort((minors, majors))
        merged = lists[order]
        counts = np.zeros((len(order) // block + 1, len(first) - 1), np.int64)
        for row in range(1, len(counts)):
            part = merged[(row - 1) * block : row * block]
            counts[row] = counts[row - 1] + np.bincount(part, minlength=counts.shape[1])
        merged_minors = minors[order] if minors.any() else minors[:0]
        return [*iovs, np.concatenate(self._offsets), first, majors[order], merged_minors, merged, counts]

    def _emit(self, text: bytes) -> None:
        self._file.write(text)
        self._checksum = zlib.crc32(text, self._checksum)
        self.size += len(text)
