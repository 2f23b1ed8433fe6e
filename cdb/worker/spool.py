"""Temporary files for slow clients: incomplete request bodies, and responses that are not sent completely."""

import contextlib
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO

from cdb import env

# The spool leaves this much disk space free, because PostgreSQL may use the same disk.
FREE_BYTES_LEFT = 1 << 30
# The maximum number of bytes that are read, written or sent at a time.
PIECE_BYTES = 256 * 1024


class SpoolFullError(OSError):
    """The spool has no space for more data, or no file can be created or written."""


class Spool:
    """The temporary files of one process, which together hold at most `most_bytes`.

    The files have no names, so the kernel removes them when the process ends, even if it is killed. When the spool is
    full, up to `most_waiting` threads may wait for their clients instead; they acquire the semaphore `waiting`.

    `directory` must exist. All threads may use a spool at the same time.
    """

    def __init__(self, directory: Path, most_bytes: int, most_waiting: int) -> None:
        self._directory = directory
        self._most_bytes = most_bytes
        self.waiting = threading.BoundedSemaphore(most_waiting)
        self._bytes = 0
        self._lock = threading.Lock()

    def open(self) -> BinaryIO:
        """A new empty file. Raises `SpoolFullError` if none can be created."""
        try:
            return tempfile.TemporaryFile(dir=self._directory, buffering=0)
        except OSError as error:
            raise SpoolFullError(*error.args) from error

    def reserve(self, count: int) -> None:
        """Reserve `count` bytes.

        Raises `SpoolFullError` if the files would exceed `most_bytes`, or if the disk would have less than
        `FREE_BYTES_LEFT` bytes free.
        """
        with self._lock:
            free = shutil.disk_usage(self._directory).free - FREE_BYTES_LEFT
            if self._bytes + count > self._most_bytes or count > free:
                raise SpoolFullError(f"the spool in {self._directory} is full")
            self._bytes += count

    def release(self, count: int) -> None:
        """Release `count` reserved bytes."""
        with self._lock:
            self._bytes -= count


class SpoolFile:
    """A queue of bytes in a file of a spool: data are appended at the end and read from the beginning.

    The file exists only while the queue is not empty. The space of bytes that were read is released when the queue is
    empty, not before. Only one thread at a time may use a queue.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._file: BinaryIO | None = None
        self._begin = self._end = 0

    def __len__(self) -> int:
        """The number of unread bytes."""
        return self._end - self._begin

    def append(self, data: bytes | memoryview) -> None:
        """Append the data. Raises `SpoolFullError`, and leaves the queue unchanged, if there is no space."""
        self._spool.reserve(len(data))
        view, written = memoryview(data), 0
        try:
            self._file = self._file or self._spool.open()
            while written < len(view):
                written += os.pwrite(self._file.fileno(), view[written:], self._end + written)
        except OSError as error:
            self._spool.release(len(data))
            raise SpoolFullError(*error.args) from error
        self._end += written

    def peek(self, most: int) -> bytes:
        """The next bytes, at most `most`, without removing them."""
        return os.pread(self._file.fileno(), min(most, len(self)), self._begin) if self._file else b""

    def drop(self, count: int) -> None:
        """Remove the next `count` bytes."""
        self._begin += count
        if self._begin == self._end:
            self.close()

    def read(self, most: int) -> bytes:
        """Remove and return the next bytes, at most `most`."""
        data = self.peek(most)
        self.drop(len(data))
        return data

    def close(self) -> None:
        """Remove the file and release its space. The queue is then empty, and can be used again."""
        self._spool.release(self._end)
        self._begin = self._end = 0
        if self._file:
            self._file.close()
            self._file = None


def process_spool() -> Spool:
    """A spool of CDB_SPOOL_BYTES for this process.

    It is in `spool` under CDB_DATA_DIR, or in the temporary directory if `spool` can't be created or is not writable.
    Half of the threads, at least one, may wait for clients when it is full.
    """
    values = env.read()
    directory = values["CDB_DATA_DIR"] / "spool"
    with contextlib.suppress(OSError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(directory, os.W_OK | os.X_OK):
        directory = Path(tempfile.gettempdir())
    return Spool(directory, values["CDB_SPOOL_BYTES"], max(1, values["CDB_THREADS"] // 2))
