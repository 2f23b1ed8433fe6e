"""Writing a pack: the rows of payload lists from PostgreSQL's COPY, and the arrays to find them."""

import json
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from cdb_rest.compiled.intervals import Integers
from cdb_rest.compiled.pack import END, FORMAT, UnusableError

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
# The number of columns; then each column with its length in front: the start and the end of the IOV; and the length of the row's
# JSON array, which is the last column.
NAMES = ("major", "minor", "major_end", "minor_end")
HEAD_TYPE = np.dtype(
    [
        ("columns", ">i2"),
        *((f"{name}{part}", kind) for name in NAMES for part, kind in (("_length", ">i4"), ("", ">i8"))),
        ("text_length", ">i4"),
    ]
)
COLUMNS = 5
# More take more memory.
RECORDS_AT_ONCE = 65_536
# The least number of rows in a block. More make `counts` smaller, and each lookup slower.
LEAST_BLOCK = 1024


class Writer:
    """Writes a pack to a file, list by list. `progress` is called with the number of rows, repeatedly.

    `write` is called by COPY in the binary format, with a message for each row. Raises `OSError`, for example if the disk is
    full, and `UnusableError` if the rows do not have the form or the order that is expected.
    """

    def __init__(self, file: BinaryIO, progress: Callable[[int], None]) -> None:
        self._file = file
        self._progress = progress
        self._checksum = 0
        self.size = 0
        self.rows = 0
        self._first = [0]
        self._offsets = [np.zeros(1, np.int64)]
        self._heads: list[Integers] = []
        self._records: list[bytes] = []

    def write(self, message: bytes) -> None:
        """Add a message of COPY."""
        self._records.append(message)
        if len(self._records) > RECORDS_AT_ONCE:
            self._flush(len(self._records) - 1)

    def end_list(self) -> None:
        """Add the next list after this."""
        if not self._records or self._records[-1] not in (TRAILER, SIGNATURE + TRAILER):
            raise UnusableError("PostgreSQL's COPY did not end as expected")
        if self._records.pop() == TRAILER and self._records:
            self._flush(len(self._records))
        self._first.append(self.rows)

    def finish(self, **header: Any) -> None:
        """Complete the pack. The header has `database` and `lists`, the `ListKey` of each list."""
        block = max(LEAST_BLOCK, 4 * (len(self._first) - 1))
        arrays = self._arrays(block)
        self._emit(bytes(-self.size % 8))
        places = {}
        for name, array in arrays.items():
            places[name] = (array.dtype.str, array.shape, self.size)
            self._emit(array.tobytes() + bytes(-array.nbytes % 8))
        text = json.dumps({"format": FORMAT, "block": block, "arrays": places, **header}).encode()
        self._emit(text)
        self._emit(END.pack(len(text), 0)[:-4])
        self._file.write(END.pack(0, self._checksum)[-4:])
        self.size += 4

    def _flush(self, count: int) -> None:
        """Write the first records."""
        records, self._records = self._records[:count], self._records[count:]
        if self.rows == self._first[-1]:
            if not records[0].startswith(SIGNATURE):
                raise UnusableError("PostgreSQL's COPY did not begin as expected")
            records[0] = records[0][len(SIGNATURE) :]
        size = HEAD_TYPE.itemsize
        lengths = np.fromiter(map(len, records), np.int64, len(records)) - size
        if lengths.min() < 0:
            raise UnusableError("a record of PostgreSQL's COPY is too short")
        heads = np.frombuffer(b"".join([record[:size] for record in records]), HEAD_TYPE)
        if (heads["columns"] != COLUMNS).any() or (heads["text_length"] != lengths).any():
            raise UnusableError("a record of PostgreSQL's COPY does not have the expected columns")
        self._offsets.append(self.size + np.cumsum(lengths))
        self._heads.append(np.stack([heads[name].astype(np.int64) for name in NAMES]))
        self._emit(b"".join([record[size:] for record in records]))
        self.rows += len(records)
        self._progress(self.rows)

    def _arrays(self, block: int) -> dict[str, np.ndarray[Any, Any]]:
        heads = np.concatenate([np.zeros((4, 0), np.int64), *self._heads], axis=1)
        self._heads.clear()
        first = np.array(self._first, np.int64)
        majors, minors = heads[0], heads[1]
        # A list has at most a few million rows, but a pack may have any number of lists.
        lists = np.repeat(np.arange(len(first) - 1), np.diff(first)).astype("<u2" if len(first) <= 2**16 else "<u4")
        is_later = (majors[1:] > majors[:-1]) | ((majors[1:] == majors[:-1]) & (minors[1:] > minors[:-1]))
        if not (is_later | (lists[1:] != lists[:-1])).all():
            raise UnusableError("PostgreSQL's COPY sent a row twice, or not in order")
        order = np.lexsort((minors, majors)) if minors.any() else np.argsort(majors, kind="stable")
        merged = lists[order]
        counts = np.zeros((len(order) // block + 1, len(first) - 1), np.int64)
        for row in range(1, len(counts)):
            part = merged[(row - 1) * block : row * block]
            counts[row] = counts[row - 1] + np.bincount(part, minlength=counts.shape[1])
        return {
            **dict(zip(("majors", "minors", "major_ends", "minor_ends"), heads, strict=True)),
            "offsets": np.concatenate(self._offsets),
            "first": first,
            "merged_majors": majors[order],
            "merged_minors": minors[order] if minors.any() else minors[:0],
            "lists": merged,
            "counts": counts,
        }

    def _emit(self, text: bytes) -> None:
        self._file.write(text)
        self._checksum = zlib.crc32(text, self._checksum)
        self.size += len(text)
