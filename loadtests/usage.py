"""CPU time and memory of processes: gunicorn, PostgreSQL, and the whole machine."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.02


def family_cpu(root: psutil.Process) -> float:
    """CPU seconds of a process and its descendants, including those that have ended and been waited for."""
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def postmaster(data: Path) -> psutil.Process:
    """The main process of the PostgreSQL server on a data directory."""
    return psutil.Process(postmaster_id(data))


def postmaster_id(data: Path) -> int | None:
    """The process id of the main process by the server's own file; None if there is no such file."""
    record = data / "postmaster.pid"
    return int(record.read_text().split("\n", 1)[0]) if record.exists() else None


def processes_in(directory: Path) -> list[psutil.Process]:
    """The processes with this working directory: on a data directory of PostgreSQL, all of the server."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd() == str(directory.resolve()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def whole_cpu() -> float:
    """CPU seconds of all cores since boot, for all processes, without idle time."""
    times = psutil.cpu_times()
    # The kernel includes guest time in user time.
    idle = times.idle + getattr(times, "iowait", 0.0)
    return sum(times) - idle - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)


@dataclass
class Usage:
    """CPU seconds that were used inside a block: gunicorn's, PostgreSQL's, and those of the whole machine."""

    gunicorn: float = 0.0
    postgres: float = 0.0
    whole: float = 0.0


@contextlib.contextmanager
def measured(gunicorn: psutil.Process | None, postgres: psutil.Process) -> Iterator[Usage]:
    """Measure the CPU time of a block; the yielded object is filled when the block ends. `gunicorn` may be None."""

    def read() -> tuple[float, float, float]:
        return family_cpu(gunicorn) if gunicorn else 0.0, family_cpu(postgres), whole_cpu()

    usage = Usage()
    before = read()
    yield usage
    after = read()
    usage.gunicorn, usage.postgres, usage.whole = (late - early for early, late in zip(before, after, strict=True))


@contextlib.contextmanager
def peak_of_workers(gunicorn: psutil.Process, *, recursive: bool = False) -> Iterator[dict[str, float]]:
    """Sample the resident memory of the largest child process, in MiB; with `recursive`, of the largest descendant.

    The yielded dictionary has the value at the start, `worker_before_mib`, and the largest one, `worker_peak_mib`.
    """

    def read() -> float:
        return max((child.memory_info().rss for child in gunicorn.children(recursive)), default=0) / 2**20

    memory = dict.fromkeys(("worker_before_mib", "worker_peak_mib"), read())
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            with contextlib.suppress(psutil.Error):
                memory["worker_peak_mib"] = max(memory["worker_peak_mib"], read())

    watcher = threading.Thread(target=watch, name="peak", daemon=True)
    watcher.start()
    try:
        yield memory
    finally:
        ended.set()
        watcher.join()
