"""The service as in production, with access to its processes for fault injection."""

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg2

from loadtests import usage
from loadtests.service import ServiceError, Settings, start

START_SECONDS = 120
STOP_SECONDS = 60
CHECK_INTERVAL_SECONDS = 0.02


class Serving:
    """`manage.py serve`, or another command of manage.py, on a data directory; `lines` is its output so far."""

    def __init__(self, settings: Settings, port: int, command: str = "serve") -> None:
        self.settings = settings
        self.port = port
        self.lines: list[str] = []
        self._command = command

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.settings.data.resolve()

    @contextlib.contextmanager
    def running(self) -> Iterator["Serving"]:
        """Run the service inside the block. Raises `ServiceError` if it does not start."""
        environment = self.settings.environment(PORT=str(self.port))
        self._process = start(environment, "manage.py", self._command, output=subprocess.PIPE)
        family: list[psutil.Process] = []
        try:
            threading.Thread(target=self._listen, daemon=True).start()
            self.wait_for_line("Stop:")
            yield self
            family = [*self.databases(), *self.descendants()]
            self._process.terminate()
            self._process.wait(STOP_SECONDS)
        finally:
            for process in [*family, *self.descendants()]:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            self._process.kill()
            self._process.wait()

    def wait_for_line(self, beginning: str, after: int = 0) -> None:
        """Wait until the output has a line with this beginning after its first `after` lines.

        Raises `ServiceError` if the service ends or the time is over.
        """
        deadline = time.monotonic() + START_SECONDS
        while not any(line.startswith(beginning) for line in self.lines[after:]):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ServiceError(f"the service did not print {beginning!r}: {self.lines[-5:]}")
            time.sleep(CHECK_INTERVAL_SECONDS)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the command's main process."""
        self._process.send_signal(number)

    def manage(self, *arguments: str) -> subprocess.Popen:
        """Start a command of manage.py with the same settings, and return its process."""
        return start(self.settings.environment(), "manage.py", *arguments, output=subprocess.PIPE)

    def descendants(self) -> list[psutil.Process]:
        """All descendants of the command's main process."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).children(recursive=True)
        return []

    def databases(self) -> list[psutil.Process]:
        """All processes of PostgreSQL, beginning with its main process."""
        directory = self.data / "postgres" / "data"
        first = usage.postmaster_id(directory)
        return sorted(usage.processes_in(directory), key=lambda process: process.pid != first)

    def named(self, name: str) -> list[psutil.Process]:
        """The descendants with a program name."""
        return [process for process in self.descendants() if _is(process, name)]

    def gunicorn_masters(self) -> list[psutil.Process]:
        """The gunicorn masters: the gunicorn processes that are children of the command's main process."""
        return [process for process in self.named("gunicorn") if _parent(process) == self._process.pid]

    def nginx_master(self) -> psutil.Process:
        """The master process of nginx."""
        return next(process for process in self.named("nginx") if _parent(process) == self._process.pid)

    def database_url(self) -> str:
        """The libpq URL of PostgreSQL itself, without PgBouncer."""
        return f"postgresql://cdb@/cdb?host={self.data}/postgres/socket"

    def wait_until_database_responds(self) -> None:
        """Wait until PostgreSQL executes a statement on a new connection.

        Raises `ServiceError` if it does not in time.
        """
        self._wait_until_responds(self.database_url())

    def wait_until_pooler_responds(self) -> None:
        """Wait until PgBouncer executes a statement on a new connection.

        Raises `ServiceError` if it does not in time.
        """
        with open(self.data / "serve" / "pgbouncer.ini") as file:  # noqa: PTH123
            directory = next(line.split("=")[1].strip() for line in file if line.startswith("unix_socket_dir"))
        self._wait_until_responds(f"postgresql://cdb@/cdb_lookups?host={directory}&port=6432")

    @staticmethod
    def _wait_until_responds(url: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with (
                contextlib.suppress(psycopg2.Error),
                contextlib.closing(psycopg2.connect(url, connect_timeout=2)) as connection,
            ):
                connection.cursor().execute("SELECT 1")
                return
            time.sleep(CHECK_INTERVAL_SECONDS)
        raise ServiceError(f"no response from {url} within {START_SECONDS} s")

    def _listen(self) -> None:
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))


def _is(process: psutil.Process, name: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.name() == name or (name == "gunicorn" and "gunicorn" in " ".join(process.cmdline()))
    return False


def _parent(process: psutil.Process) -> int | None:
    with contextlib.suppress(psutil.Error):
        return process.ppid()
    return None
