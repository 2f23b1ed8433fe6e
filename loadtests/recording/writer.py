"""Writes what a process of the generator met: a row for each request, and one for each second about the process itself.

Each process has two files in the directory of a recording, `requests-<host>-<pid>.csv` and `generator-<host>-<pid>.csv`, and an
empty one, `complete-<host>-<pid>.csv`, once it has ended in order.
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
# The clock of the loop's lag: a late tick means that requests were late as well, and answers noticed late.
TICK_SECONDS = 0.05


class Writer:
    """Writes into a directory, which is made, until it is closed."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        name = f"{socket.gethostname()}-{os.getpid()}.csv"
        # By lines: of a process that is killed, everything is there that it met.
        self._requests, self._samples = (
            (directory / f"{kind}-{name}").open("w", buffering=1, newline="", encoding="utf-8")
            for kind in ("requests", "generator")
        )
        self._complete = directory / f"complete-{name}"
        # Of a test before this one from the web UI, whose files end here.
        self._complete.unlink(missing_ok=True)
        self._request_rows, self._sample_rows = csv.writer(self._requests), csv.writer(self._samples)
        self._request_rows.writerow(Request._fields)
        self._sample_rows.writerow(Sample._fields)
        self.users = 0
        self.in_progress = 0
        self._sampling = gevent.spawn(self._sample)

    def add(self, request: Request) -> None:
        """Keep one request."""
        self._request_rows.writerow(request)

    def close(self) -> None:
        """Write down what there is."""
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
