"""The format of a recording: the rows of its files, and the clock of their times."""

import csv
import os
import socket
import time
from pathlib import Path
from typing import NamedTuple

JOB = "JOB"
# Read once: a step of the wall clock during a test would distort the times of requests.
_ORIGIN = time.time() - time.perf_counter()


def now() -> float:
    """Seconds since the epoch, by a monotonic clock; forked processes share it."""
    return _ORIGIN + time.perf_counter()


class Request(NamedTuple):
    """A request, or a whole job (`method` is then JOB, and `rows` the number of its requests).

    `due`, `begin` and `end` are seconds since the epoch: when the request was due, when it began, and when the
    last byte of its response arrived. `due` and `begin` differ if jobs start at a given rate and the generator
    is late. `status` is 0 without a response; `rows` is -1 if the response has no rows.
    """

    due: float
    begin: float
    end: float
    user: str
    name: str
    method: str
    status: int
    outcome: str
    rows: int
    bytes: int
    detail: str


class Sample(NamedTuple):
    """One second of a generator process.

    `time` is its end in seconds since the epoch, `cpu` the CPU of the process in cores, `lag_ms` the longest
    lag of its event loop in milliseconds; `users` and `in_progress` are the numbers of users and of jobs in
    progress.
    """

    time: float
    cpu: float
    lag_ms: float
    users: int
    in_progress: int


class Files:
    """The files of this process in the directory of a recording: CSV writers of requests and of samples.

    They are `requests-<host>-<pid>.csv` and `generator-<host>-<pid>.csv`; `close` adds an empty file
    `complete-<host>-<pid>.csv`. The directory is created if it does not exist.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        name = f"{socket.gethostname()}-{os.getpid()}.csv"
        # Buffered by line, so that no written row is lost if the process is killed.
        self._files = [
            (directory / f"{kind}-{name}").open("w", buffering=1, newline="", encoding="utf-8")
            for kind in ("requests", "generator")
        ]
        self._complete = directory / f"complete-{name}"
        # With the web UI, a process can run several tests. Each overwrites the last one's files in the same directory.
        self._complete.unlink(missing_ok=True)
        self.requests, self.samples = map(csv.writer, self._files)
        self.requests.writerow(Request._fields)
        self.samples.writerow(Sample._fields)

    def close(self) -> None:
        """Close the files and mark the recording of this process as complete."""
        for file in self._files:
            file.close()
        self._complete.touch()
