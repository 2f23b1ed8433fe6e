"""Who used the processors meanwhile: gunicorn, PostgreSQL, the client, and everybody else."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.02


def family_cpu(root: psutil.Process) -> float:
    """CPU seconds of a process and all that it started; of those that have ended too, as far as they were waited for."""
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def postmaster(data: Path) -> psutil.Process:
    """The server on a data directory."""
    return psutil.Process(int((data / "postmaster.pid").read_text().split("\n", 1)[0]))


def whole_cpu() -> float:
    """CPU seconds that all cores have worked, for whomever."""
    times = psutil.cpu_times()
    # The kernel counts guests among user time already.
    idle = times.idle + getattr(times, "iowait", 0.0)
    return sum(times) - idle - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)


@dataclass
class Usage:
    """CPU seconds inside a block."""

    gunicorn: float = 0.0
    postgres: float = 0.0
    whole: float = 0.0


@contextlib.contextmanager
def measured(gunicorn: psutil.Process | None, postgres: psutil.Process) -> Iterator[Usage]:
    """Fills in what it yields at the end of the block; an idle gunicorn may be left out."""

    def read() -> tuple[float, float, float]:
        return family_cpu(gunicorn) if gunicorn else 0.0, family_cpu(postgres), whole_cpu()

    usage = Usage()
    before = read()
    yield usage
    after = read()
    usage.gunicorn, usage.postgres, usage.whole = (late - early for early, late in zip(before, after, strict=True))


@dataclass
class Peak:
    """The largest value seen, and the one at the start."""

    first: int = 0
    most: int = 0


@contextlib.contextmanager
def peak_of(read: Callable[[], int]) -> Iterator[Peak]:
    """Samples a value every few milliseconds while the block runs."""
    peak = Peak(first=read())
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            with contextlib.suppress(psutil.Error):
                peak.most = max(peak.most, read())

    watcher = threading.Thread(target=watch, name="peak", daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()
        peak.most = max(peak.most, peak.first)


def largest_worker(gunicorn: psutil.Process, *, recursive: bool = False) -> int:
    """Resident bytes of the largest worker; `recursive` for the largest process of several programs."""
    return max((child.memory_info().rss for child in gunicorn.children(recursive)), default=0)
