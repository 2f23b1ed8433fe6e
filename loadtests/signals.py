"""What the programs of the service use while it is under load: CPU, memory, descriptors, connections."""

import contextlib
import os
import threading
from collections import defaultdict
from collections.abc import Iterator

import pandas
import psutil

from loadtests import usage
from loadtests.recording import now
from loadtests.service import Service

INTERVAL_SECONDS = 1.0
PROGRAMS = ("nginx", "granian", "gunicorn", "compiler", "postgres", "locust")


class Signals:
    """A row for each second: `time`, and by program `cpu.` in cores, `memory.` in bytes, `files.` and `threads.`.

    `cpu.machine` is that of all programs on this machine. The memory is private; pages shared with other processes do not
    count, except for PostgreSQL, whose shared memory counts once.
    """

    def __init__(self, service: Service | None) -> None:
        self.rows: list[dict[str, float]] = []
        self._service = service
        self._seconds: dict[str, float] = {}

    @property
    def frame(self) -> pandas.DataFrame:
        """The rows so far."""
        return pandas.DataFrame(self.rows, columns=None if self.rows else ["time"])

    def sample(self) -> None:
        """Add a row; what cannot be read is left out."""
        row = {"time": now(), "cpu.machine": psutil.cpu_percent() / 100 * (psutil.cpu_count() or 1)}
        seconds: dict[str, float] = {}
        for process, program in self._processes():
            with contextlib.suppress(psutil.Error), process.oneshot():
                cpu, memory = process.cpu_times(), process.memory_info()
                name = f"cpu.{program}"
                # PostgreSQL's processes may live for less than a second; their time is in that of their parent.
                ended = cpu.children_user + cpu.children_system if program == "postgres" else 0.0
                seconds[name] = seconds.get(name, 0.0) + cpu.user + cpu.system + ended
                found = {"memory": memory.rss - memory.shared, "files": process.num_fds()}
                for kind, value in (found | {"threads": process.num_threads()}).items():
                    row[f"{kind}.{program}"] = row.get(f"{kind}.{program}", 0.0) + value
        if self.rows:
            passed = row["time"] - self.rows[-1]["time"]
            before = defaultdict(float, self._seconds)
            row |= {name: max(0.0, value - before[name]) / passed for name, value in seconds.items()}
        self._seconds = seconds
        self.rows.append(row)

    def _processes(self) -> Iterator[tuple[psutil.Process, str]]:
        """The processes of the service, of its database and of this load test, with the names of their programs."""
        roots = [psutil.Process(os.getpid())]
        if self._service:
            roots.append(self._service.root())
            with contextlib.suppress(OSError, ValueError, psutil.Error):
                roots.append(usage.postmaster(self._service.settings.data / "postgres" / "data"))
        seen: set[psutil.Process] = set()
        for root in roots:
            with contextlib.suppress(psutil.Error):
                for process in {root, *root.children(recursive=True)} - seen:
                    seen.add(process)
                    with contextlib.suppress(psutil.Error):
                        words = " ".join([process.name(), *process.cmdline()])
                        yield process, next((name for name in PROGRAMS if name in words), "other")


@contextlib.contextmanager
def sampled(service: Service | None) -> Iterator[Signals]:
    """Sample once a second inside the block. An error of a source never ends a load test."""
    signals, over = Signals(service), threading.Event()

    def work() -> None:
        while True:
            with contextlib.suppress(Exception):
                signals.sample()
            if over.wait(INTERVAL_SECONDS):
                return

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield signals
    finally:
        over.set()
        thread.join()
