"""Slots for shared metrics: each process writes to files under the lowest number that no running process has.

prometheus_client names these files after process ids. Each process that ends then leaves files behind, and a service
whose workers are replaced for years has more of them than can be read. With slots, a new process continues the counts
in the files of its slot. So the number of files does not grow when processes are replaced, and no count is lost,
doubled or reset, however a process ends.

A process owns its slot by a POSIX lock on one byte of a file. The kernel releases the lock when the process ends, and a
forked process does not inherit it.
"""

import fcntl
import itertools
import os
import struct
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from prometheus_client import multiprocess

LOCKS = "slots"
# The file names of prometheus_client, with sizes. The space is allocated at once: writing to a mapped file for which a full
# file system has no space kills the process. A series takes about 200 bytes. Gauges of ended processes are removed.
FILES = {
    "counter": 512 * 1024,
    "histogram": 512 * 1024,
    "gauge_livesum": 16 * 1024,
    "gauge_livemin": 16 * 1024,
    "gauge_livemax": 16 * 1024,
}
# Process id, name of the pool, threads.
RECORD = struct.Struct("i24si")


@dataclass
class ProcessInfo:
    """Facts about this process for its metrics. gunicorn's master process sets them before it loads the application.

    - `directory`: the directory of the shared metrics; None if the process does not share its metrics.
    - `pool`: the name of its gunicorn instance; `threads`: the number of threads of each worker there.
    - `pooler`: the libpq URL of PgBouncer's console; `nginx`: the URL of nginx's status. None if there is none.
    """

    directory: Path | None = None
    pool: str = "all"
    threads: int = 1
    pooler: str | None = None
    nginx: str | None = None


here = ProcessInfo()


class Owner(NamedTuple):
    """A running process that owns a slot: its id, its pool, and the number of its threads that handle requests."""

    pid: int
    pool: str
    threads: int


class Slots:
    """The slots of all processes that store metrics in `directory`, and the slot of this process.

    gunicorn's master process must create the object before it forks. The process that creates it is recorded with 0
    threads that handle requests.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # gunicorn's master process, which handles no requests.
        self._first_pid = os.getpid()
        self._pid = 0
        self._number = -1
        # It stays open, because closing any descriptor of a file releases the locks on it.
        self._locks = -1
        # POSIX locks belong to the process, so they do not exclude its other threads.
        self._thread_lock = threading.Lock()

    def number(self) -> int:
        """The number of this process's slot. The first call in each process takes the slot.

        Two threads must not make the first call at the same time. Raises `OSError` if the files cannot be created, for
        example because the file system has no space for them. The next call then tries again.
        """
        if self._pid != os.getpid():
            self._take()
        return self._number

    def path(self, prefix: str) -> Path:
        """The file of this process for a kind of metrics, a key of `FILES`. Raises `OSError` as `number` does."""
        return self._directory / f"{prefix}_{self.number()}.db"

    def living(self) -> list[Owner]:
        """The running processes. Removes the gauges of processes that have ended. Raises `OSError` as `number` does."""
        own = self.number()
        with self._thread_lock:
            numbers = range(os.fstat(self._locks).st_size // RECORD.size)
            return [self._owner(number) for number in numbers if number == own or not self._clear(number)]

    def _take(self) -> None:
        self._locks = os.open(self._directory / LOCKS, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._number = self._create_files()
        except OSError:
            # The next call opens it again.
            os.close(self._locks)
            raise
        self._pid = os.getpid()

    def _create_files(self) -> int:
        """Lock a free slot, create its files and record this process; returns the number of the slot."""
        number = next(filter(self._lock, itertools.count()))
        multiprocess.mark_process_dead(number, self._directory)
        for prefix, size in FILES.items():
            file = os.open(self._directory / f"{prefix}_{number}.db", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(file, 0, size)
            finally:
                os.close(file)
        threads = 0 if os.getpid() == self._first_pid else here.threads
        record = RECORD.pack(os.getpid(), here.pool.encode(), threads)
        os.pwrite(self._locks, record, number * RECORD.size)
        return number

    def _owner(self, number: int) -> Owner:
        pid, pool, threads = RECORD.unpack(os.pread(self._locks, RECORD.size, number * RECORD.size))
        return Owner(pid, pool.rstrip(b"\0").decode(), threads)

    def _clear(self, number: int) -> bool:
        """Remove the gauges of a free slot; returns whether the slot is free."""
        if not self._lock(number):
            return False
        try:
            multiprocess.mark_process_dead(number, self._directory)
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, number)
        return True

    def _lock(self, number: int) -> bool:
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):
            # POSIX permits both errors for a lock that another process has. Any other error means that locks do not work.
            return False
        return True
