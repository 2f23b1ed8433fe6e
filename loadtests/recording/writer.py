"""Writing a recording: one row for each request, and one row per second about the load generator process itself.

Each process writes two files into the directory of the recording, `requests-<host>-<pid>.csv` and
`generator-<host>-<pid>.csv`. When the test ends normally, it creates an empty file `complete-<host>-<pid>.csv`.
"""

import csv
import os
import socket
import time
from pathlib import Path

import gevent
import psutil

from loadtests.recording import clock
from loadtests.recording.rows import Request, Sample

SAMPLE_SECONDS = 1.0
# The interval at which the lag of the event loop is measured. A late tick means that requests and responses were
# handled late, too.
TICK_SECONDS = 0.05


class Writer:
    """Writes the files of this process into a directory, until `close` is called.

    The directory is created if it does not exist. The caller keeps `users` and `in_progress` up to date: the numbers of
    users and of jobs in progress for the rows about the process.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        name = f"{socket.gethostname()}-{os.getpid()}.csv"
        # Buffered by line, so that no written row is lost if the process is killed.
        self._requests, self._samples = (
            (directory / f"{kind}-{name}").open("w", buffering=1, newline="", encoding="utf-8")
            for kind in ("requests", "generator")
        )
        self._complete = directory / f"complete-{name}"
        # With the web UI, a process can run several tests. Each overwrites the last one's files in the same directory.
        self._complete.unlink(missing_ok=True)
        self._request_rows, self._sample_rows = csv.writer(self._requests), csv.writer(self._samples)
        self._request_rows.writerow(Request._fields)
        self._sample_rows.writerow(Sample._fields)
        self.users = 0
        self.in_progress = 0
        self._sampling = gevent.spawn(self._sample)

    def add(self, request: Request) -> None:
        """Write the row of one request or job."""
        self._request_rows.writerow(request)

    def close(self) -> None:
        """Stop sampling, close the files and mark the recording of this process as complete."""
        self._sampling.kill()
        self._requests.close()
        self._samples.close()
        self._complete.touch()

    def _sample(self) -> None:
        process = psutil.Process()
        times, begin, longest = process.cpu_times(), time.perf_counter(), 0.0
        while True:
            tick = time.perf_counter()
            gevent.sleep(TICK_SECONDS)
            now = time.perf_counter()
            longest = max(longest, now - tick - TICK_SECONDS)
            if now - begin < SAMPLE_SECONDS:
                continue
            before, times = times, process.cpu_times()
            cpu = (times.user + times.system - before.user - before.system) / (now - begin)
            row = Sample(clock.now(), round(cpu, 4), round(longest * 1000, 3), self.users, self.in_progress)
            self._sample_rows.writerow(row)
            begin, longest = now, 0.0
