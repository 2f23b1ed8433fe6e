"""Shared counts: each process writes files of its own, under the lowest number that no living process has.

Prometheus's client names the files after process ids. Then each process that ends leaves files behind, and years of replaced
processes more of them than can be read. Here the next process with a number goes on with the counts that it finds, so that there
are as many files as there ever were processes at a time, and no count is lost, doubled or taken back, however a process ends.

A number is held by a lock on one byte of a file. Such a lock (POSIX) ends with its process, and is not inherited by a fork.
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
# As the client names its files, with their sizes: taken from the file system at once, because what grows later in a full one
# would kill the process that writes. A series takes some 200 bytes. Of gauges only those of living processes count.
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
class Place:
    """This process's place among those that count together, which its starter says before the application is loaded.

    The directory of the shared counts (None: it counts for itself alone), the name of the gunicorn instance it belongs to, how
    many threads a process of that has, the libpq URL of PgBouncer's console and the URL of nginx's status, where these stand
    around it.
    """

    directory: Path | None = None
    pool: str = "all"
    threads: int = 1
    pooler: str | None = None
    nginx: str | None = None


here = Place()


class Owner(NamedTuple):
    """A living process that counts, the pool it belongs to and how many of its threads answer requests."""

    pid: int
    pool: str
    threads: int


class Slots:
    """The numbers of the processes that count into `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # gunicorn's first process, which only starts the others.
        self._first_pid = os.getpid()
        self._pid = 0
        self._number = -1
        # Kept open: whoever closes a file gives up the locks on it.
        self._locks = -1
        # The process has a lock or not, whichever of its threads asked for it.
        self._looking = threading.Lock()

    def number(self) -> int:
        """The number of this process, which is taken at the first call in it.

        Raises `OSError` where the file system has no room for its files.
        """
        if self._pid != os.getpid():
            self._take()
        return self._number

    def path(self, prefix: str) -> Path:
        """The file of this process for a kind of metrics, as the client calls it."""
        return self._directory / f"{prefix}_{self.number()}.db"

    def living(self) -> list[Owner]:
        """The processes that count. What those that ended left of their gauges is removed."""
        own = self.number()
        with self._looking:
            numbers = range(os.fstat(self._locks).st_size // RECORD.size)
            return [self._owner(number) for number in numbers if number == own or not self._clear(number)]

    def _take(self) -> None:
        self._locks = os.open(self._directory / LOCKS, os.O_RDWR | os.O_CREAT, 0o600)
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
        self._pid, self._number = os.getpid(), number

    def _owner(self, number: int) -> Owner:
        pid, pool, threads = RECORD.unpack(os.pread(self._locks, RECORD.size, number * RECORD.size))
        return Owner(pid, pool.rstrip(b"\0").decode(), threads)

    def _clear(self, number: int) -> bool:
        """Remove the gauges under a number that nobody has. Returns whether it is such a one."""
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
            # POSIX lets a lock that somebody has be told by either; anything else is no lock at all.
            return False
        return True
