"""Writing a recording: one row for each request, and one row per second about the load generator process itself."""

import time
from collections.abc import Callable
from pathlib import Path

import gevent
import psutil

from loadtests.recording.rows import Files, Sample, now

SAMPLE_SECONDS = 1.0
# The interval at which the lag of the event loop is measured. A late tick means that requests and responses were
# handled late, too.
TICK_SECONDS = 0.05


class Writer(Files):
    """The files of this process, into which it also writes samples about itself until `close` is called."""

    def __init__(self, directory: Path, counts: Callable[[], tuple[int, int]]) -> None:
        """Begin a recording; `counts` returns the numbers of users and of jobs in progress."""
        super().__init__(directory)
        self._counts = counts
        self._sampling = gevent.spawn(self._sample)

    def close(self) -> None:
        """Stop sampling, close the files and mark the recording of this process as complete."""
        self._sampling.kill()
        super().close()

    def _sample(self) -> None:
        process = psutil.Process()
        times, begin, longest = process.cpu_times(), time.perf_counter(), 0.0
        while True:
            tick = time.perf_counter()
            gevent.sleep(TICK_SECONDS)
            end = time.perf_counter()
            longest = max(longest, end - tick - TICK_SECONDS)
            if end - begin < SAMPLE_SECONDS:
                continue
            before, times = times, process.cpu_times()
            cpu = (times.user + times.system - before.user - before.system) / (end - begin)
            row = Sample(now(), round(cpu, 4), round(longest * 1000, 3), *self._counts())
            self.samples.writerow(row)
            begin, longest = end, 0.0
