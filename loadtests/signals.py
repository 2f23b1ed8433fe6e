"""What the programs of the service use while it is under load: CPU, memory, descriptors, connections."""

import contextlib
import http.client
import os
import socket
import threading
import urllib.request
from collections import defaultdict
from collections.abc import Iterator

import pandas
import psutil
from prometheus_client.parser import text_string_to_metric_families

from loadtests import usage
from loadtests.recording import now
from loadtests.service import Service

INTERVAL_SECONDS = 1.0
PROGRAMS = ("nginx", "granian", "gunicorn", "compiler", "postgres", "locust")
# Columns from /metrics, which a deployment elsewhere has, too.
GAUGES = {"in_progress": "cdb_requests_in_progress"}


class Signals:
    """A row for each second: `time`, and by program `cpu.` in cores, `memory.` in bytes, `files.` and `threads.`.

    `cpu.machine` is that of all programs on this machine. The memory is private; pages shared with other processes do not
    count, except for PostgreSQL, whose shared memory counts once.
    """

    def __init__(self, url: str, service: Service | None, statsd: str = "") -> None:
        """`statsd` is an address such as 127.0.0.1:8125, to which each row is sent as gauges; empty: none."""
        self.rows: list[dict[str, float]] = []
        self._url, self._service, self._statsd = url, service, statsd
        self._seconds: dict[str, float] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    @property
    def frame(self) -> pandas.DataFrame:
        """The rows so far."""
        return pandas.DataFrame(self.rows, columns=None if self.rows else ["time"])

    def sample(self) -> None:
        """Add a row; what cannot be read is left out."""
        row = {"time": now(), "cpu.machine": psutil.cpu_percent() / 100 * (psutil.cpu_count() or 1)}
        seconds: dict[str, float] = {}
        samples = _metrics(self._url, INTERVAL_SECONDS)
        row |= {column: samples[name] for column, name in GAUGES.items() if name in samples}
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
        self._send(row)

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

    def _send(self, row: dict[str, float]) -> None:
        if not self._statsd:
            return
        host, _, port = self._statsd.rpartition(":")
        text = "\n".join(f"cdb_load.{name}:{value:g}|g" for name, value in row.items() if name != "time")
        # Nobody may listen there.
        with contextlib.suppress(OSError):
            self._socket.sendto(text.encode(), (host, int(port)))


@contextlib.contextmanager
def sampled(url: str, service: Service | None, statsd: str = "") -> Iterator[Signals]:
    """Sample once a second inside the block. An error of a source never ends a load test."""
    signals, over = Signals(url, service, statsd), threading.Event()

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


def _metrics(url: str, seconds: float) -> dict[str, float]:
    """The sums of all samples of `/metrics` by name; empty if it cannot be read within the timeout."""
    sums: dict[str, float] = defaultdict(float)
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=seconds) as response:  # noqa: S310
            for family in text_string_to_metric_families(response.read().decode()):
                for sample in family.samples:
                    sums[sample.name] += sample.value
    # ValueError: the body is not in the format of Prometheus, for instance the login page of a proxy.
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    return dict(sums)
