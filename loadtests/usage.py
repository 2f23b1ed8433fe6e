"""CPU time and memory of processes: the service, PostgreSQL, and the whole machine."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import psutil


def family_cpu(root: psutil.Process) -> float:
    """CPU seconds of a process and its descendants, including those that have ended and been waited for."""
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def postmaster(data: Path) -> psutil.Process:
    """The main process of the PostgreSQL server on a data directory. Raises `FileNotFoundError` if it does not run."""
    return psutil.Process(int((data / "postmaster.pid").read_text().split("\n", 1)[0]))


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


@contextlib.contextmanager
def measured(**roots: psutil.Process) -> Iterator[dict[str, float]]:
    """Measure the CPU seconds of a block, by the names of root processes with all their descendants.

    The yielded dictionary is filled when the block ends. `whole` has those of the whole machine.
    """

    def read() -> dict[str, float]:
        return {name: family_cpu(root) for name, root in roots.items()} | {"whole": whole_cpu()}

    used: dict[str, float] = {}
    before = read()
    yield used
    used |= {name: value - before[name] for name, value in read().items()}


@contextlib.contextmanager
def peak_of_workers(parent: psutil.Process) -> Iterator[dict[str, float]]:
    """Measure the peak resident memory of the children of a process, by the kernel.

    When the block ends, the yielded dictionary gets that of the largest one, `worker_peak_mib`.
    """
    children = [Path(f"/proc/{child.pid}") for child in parent.children()]
    for child in children:
        # Resets the peak (man proc_pid_clear_refs).
        (child / "clear_refs").write_text("5")
    memory: dict[str, float] = {}
    yield memory
    peaks = (re.findall(r"VmHWM:\s*(\d+) kB", (child / "status").read_text()) for child in children)
    memory["worker_peak_mib"] = max(int(kib) for found in peaks for kib in found) / 1024
