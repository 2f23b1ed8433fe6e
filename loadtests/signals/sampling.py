"""Sampling the signals of the service under load."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator

from loadtests import usage
from loadtests.database import Database
from loadtests.reporting.result import Signals
from loadtests.service import Service
from loadtests.signals import programs
from loadtests.signals.programs import Programs
from loadtests.signals.sources import Connections, Counts, Machine, others

INTERVAL_SECONDS = 1.0

Read = Callable[[], dict[str, float]]


@contextlib.contextmanager
def sampled(url: str, service: Service | None, database: Database | None) -> Iterator[Signals]:
    """Sample the signals once a second inside the block; the yielded object is filled until the block ends.

    For a remote deployment, `service` is None, and the signals are those of /metrics at `url` and of the
    generator. For a local service on a database of the embedded server, they also have its programs and connections.
    Signals that cannot be read are left out; an error never ends a run.
    """
    watch, sources = _Watch(), [Counts(url).read, _of_machine(service)]
    with contextlib.ExitStack() as stack:
        if database is not None:
            connections = Connections(database.url)
            stack.callback(connections.close)
            sources.append(connections.read)
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


def _of_machine(service: Service | None) -> Read:
    roots = {os.getpid(): programs.HARNESS}
    if service is None:
        return Programs(roots).read
    roots[service.process.pid] = programs.SERVE
    if server := usage.postmaster_id(service.settings.data / "postgres" / "data"):
        roots[server] = programs.POSTGRES
    ours, whole = Programs(roots), Machine()

    def read() -> dict[str, float]:
        columns = ours.read() | whole.read()
        return columns | others(columns)

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
