"""Processes of the service and of PostgreSQL, and their CPU time."""

import contextlib
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


@contextlib.contextmanager
def measured(**roots: psutil.Process) -> Iterator[dict[str, float]]:
    """Measure the CPU seconds of a block, by the names of root processes with all their descendants.

    The yielded dictionary is filled when the block ends.
    """

    def read() -> dict[str, float]:
        return {name: family_cpu(root) for name, root in roots.items()}

    used: dict[str, float] = {}
    before = read()
    yield used
    used |= {name: value - before[name] for name, value in read().items()}
