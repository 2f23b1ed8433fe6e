"""Sampling the signals of the service under load."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator

from loadtests.reporting.result import Signals
from loadtests.rig import Rig
from loadtests.service import Service
from loadtests.signals import machine, programs
from loadtests.signals.connections import Connections
from loadtests.signals.counts import Counts
from loadtests.signals.machine import Machine
from loadtests.signals.programs import Programs

INTERVAL_SECONDS = 1.0

Read = Callable[[], dict[str, float]]


@contextlib.contextmanager
def sampled(url: str, rig: Rig, service: Service | None) -> Iterator[Signals]:
    """Sample the signals once a second inside the block; the yielded object is filled until the block ends.

    For a remote deployment, `service` is None, and the signals are those of /metrics at `url` and of the
    generator. For a local service on the database of `rig`, they also have its programs and connections.
    Signals that cannot be read are left out; an error never ends a run.
    """
    watch = _Watch()
    with contextlib.ExitStack() as stack:
        sources = [Counts(url).read]
        if service is not None:
            connections = Connections(rig.database.url)
            stack.callback(connections.close)
            sources.append(connections.read)
        sources.append(_of_machine(rig, service))
        threads = [threading.Thread(target=watch.follow, args=(read,), daemon=True) for read in sources]
        for thread in threads:
            thread.start()
        try:
            yield watch.signals
        finally:
            watch.over.set()
            for thread in threads:
                thread.join()
            watch.signals.rows.sort(key=lambda row: row["time"])


def _of_machine(rig: Rig, service: Service | None) -> Read:
    roots = {os.getpid(): programs.RIG}
    if service is None:
        return Programs(roots).read
    roots[service.process.pid] = programs.SERVE
    with contextlib.suppress(OSError, ValueError):
        roots[rig.postmaster().pid] = programs.POSTGRES
    ours, whole = Programs(roots), Machine()

    def read() -> dict[str, float]:
        columns = ours.read() | whole.read()
        return columns | machine.others(columns)

    return read


class _Watch:
    """Rows by second, into which each source writes its columns as soon as it has them; no source waits for another."""

    def __init__(self) -> None:
        self.signals, self.over = Signals(), threading.Event()
        self._begin, self._epoch = time.monotonic(), time.time()
        self._rows: dict[int, dict[str, float]] = {}
        self._lock = threading.Lock()

    def follow(self, read: Read) -> None:
        """Read a source every second until the end; a slow source skips seconds."""
        tick = 0
        while True:
            # An error of a source must not end the sampling.
            with contextlib.suppress(Exception):
                self._write(tick, read())
            tick = max(tick + 1, int((time.monotonic() - self._begin) / INTERVAL_SECONDS) + 1)
            if self.over.wait(max(0.0, self._begin + tick * INTERVAL_SECONDS - time.monotonic())):
                return

    def _write(self, tick: int, columns: dict[str, float]) -> None:
        with self._lock:
            if columns and tick not in self._rows:
                self._rows[tick] = {"time": self._epoch + tick * INTERVAL_SECONDS}
                self.signals.rows.append(self._rows[tick])
            self._rows.get(tick, {}).update(columns)
