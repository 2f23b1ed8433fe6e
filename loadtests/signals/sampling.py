"""Sampling the signals of the service under load."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial

from loadtests import usage
from loadtests.database import Database
from loadtests.recording.rows import now
from loadtests.reporting.result import Signals
from loadtests.service import Service
from loadtests.signals.programs import HARNESS, POSTGRES, SERVE, Programs
from loadtests.signals.sources import Counts, Machine, sessions

INTERVAL_SECONDS = 1.0

Read = Callable[[], dict[str, float]]


@contextlib.contextmanager
def sampled(url: str, service: Service | None, database: Database | None) -> Iterator[Signals]:
    """Sample the signals once a second inside the block; the yielded object is filled when the block ends.

    For a remote deployment, `service` is None, and the signals are those of /metrics at `url` and of the
    generator. For a local service on a database of the embedded server, they also have its programs and connections.
    Signals that cannot be read are left out; an error never ends a run.
    """
    signals, over, begin = Signals(), threading.Event(), now()
    rows: dict[int, dict[str, float]] = {}
    sources = [Counts(url).read, _of_machine(service), *([partial(sessions, database.url)] if database else [])]
    threads = [threading.Thread(target=_follow, args=(read, rows, begin, over), daemon=True) for read in sources]
    for thread in threads:
        thread.start()
    try:
        yield signals
    finally:
        over.set()
        for thread in threads:
            thread.join()
        signals.rows.extend(rows[tick] for tick in sorted(rows))


def _of_machine(service: Service | None) -> Read:
    roots = {os.getpid(): HARNESS}
    if service is None:
        return Programs(roots).read
    roots[service.process.pid] = SERVE
    with contextlib.suppress(FileNotFoundError):
        roots[usage.postmaster(service.settings.data / "postgres" / "data").pid] = POSTGRES
    ours, whole = Programs(roots), Machine()

    def read() -> dict[str, float]:
        programs, machine = ours.read(), whole.read()
        known = sum(value for name, value in programs.items() if name.startswith("cpu."))
        other = {"cpu.other": max(0.0, machine["cpu.machine"] - known)} if "cpu.machine" in machine else {}
        return programs | machine | other

    return read


def _follow(read: Read, rows: dict[int, dict[str, float]], begin: float, over: threading.Event) -> None:
    """Read a source every second until the end, and write its columns into the row of the second.

    Each source has its own thread, so that none waits for another. A slow source skips seconds.
    """
    tick = 0
    while True:
        # An error of a source must not end the sampling.
        with contextlib.suppress(Exception):
            if columns := read():
                rows.setdefault(tick, {"time": begin + tick * INTERVAL_SECONDS}).update(columns)
        tick = max(tick + 1, int((now() - begin) / INTERVAL_SECONDS) + 1)
        if over.wait(max(0.0, begin + tick * INTERVAL_SECONDS - now())):
            return
