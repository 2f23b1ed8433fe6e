"""Watches the service while load is on it."""

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from loadtests import usage
from loadtests.campaigns.findings import Signals

if TYPE_CHECKING:
    from loadtests.campaigns.stage import Stage

INTERVAL_SECONDS = 1.0


@contextlib.contextmanager
def sampled(stage: "Stage") -> Iterator[Signals]:
    """Fills what it yields, once a second, until the block ends."""
    signals, over = Signals(), threading.Event()
    thread = threading.Thread(target=_sample, args=(stage, signals, over), daemon=True)
    thread.start()
    try:
        yield signals
    finally:
        over.set()
        thread.join()


def _sample(stage: "Stage", signals: Signals, over: threading.Event) -> None:
    busy, when = usage.whole_cpu(), time.monotonic()
    while not over.wait(INTERVAL_SECONDS):
        before, since = busy, when
        busy, when = usage.whole_cpu(), time.monotonic()
        signals.rows.append({"time": time.time(), "cpu.machine": (busy - before) / (when - since)})
