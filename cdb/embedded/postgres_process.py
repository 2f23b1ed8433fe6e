"""The process of a PostgreSQL server on one data directory: whether it lives, starting it, stopping it.

A server that was killed leaves records of itself behind. They are believed only where the process that they name really
works in the data directory.
"""

import signal
import time
from pathlib import Path

import psutil

from cdb.embedded import postgres_binaries
from cdb.env import ConfigurationError
from cdb.processes.child import Child

# Crash recovery after a kill may replay much before the server answers.
START_TIMEOUT_SECONDS = 600
STOP_TIMEOUT_SECONDS = 60
ORPHANS_TIMEOUT_SECONDS = 30
PAUSE_SECONDS = 0.02


class PostgresProcess:
    """The server on `data`, whoever started it; callers make sure that only one of them starts or stops it at a time.

    `options` are the settings it is started with, by name. Methods raise `ConfigurationError` with one line.
    """

    def __init__(self, *, data: Path, log: Path, socket_directory: Path, options: dict[str, str]) -> None:
        self.data = data
        self.log = log
        self.socket_directory = socket_directory
        self.options = options
        self._child: Child | None = None

    def is_alive(self) -> bool:
        """Whether the recorded server lives, be it that it does not answer yet."""
        try:
            return self._works_here(self._recorded_pid())
        except (OSError, ValueError, psutil.Error):
            return False

    def is_running(self) -> bool:
        """Whether the recorded server lives and answers; the record of one that was killed is cleared away."""
        try:
            pid = self._recorded_pid()
            if self._works_here(pid) and self._answers(pid):
                return True
        except FileNotFoundError:
            return False
        except (ValueError, psutil.Error):
            pass
        self._wait_for_orphans()
        # The number may belong to another program by now, or to a dead process that nobody has collected; PostgreSQL
        # would take either for the server. It keeps a record of the same kind beside its socket.
        for leftover in (self._record, *self.socket_directory.glob(".s.PGSQL.*")):
            leftover.unlink(missing_ok=True)
        return False

    def start(self) -> None:
        """Start the server, which is not running, and wait until it answers."""
        # A list, so its one element is quoted.
        quoted = str(self.socket_directory).replace('"', '""')
        options = self.options | {"unix_socket_directories": f'"{quoted}"'}
        # Kept, so that a server that ends before us does not stay behind as a dead process.
        self._child = postgres_binaries.start_server(self.data, self.log, options)
        if not self._answers(self._child.pid):
            said = [line for line in self.log.read_text(errors="replace").splitlines() if "FATAL" in line]
            raise ConfigurationError(
                f"the embedded PostgreSQL did not start: {said[-1] if said else 'see'} ({self.log})"
            )

    def stop(self) -> None:
        """Stop the server if it runs, and wait for its end."""
        if self._child and self._child.poll() is None:
            # It may be so young that it has left no record yet.
            server = psutil.Process(self._child.pid)
        elif self.is_running():
            server = psutil.Process(self._recorded_pid())
        else:
            return
        # A fast shutdown: connections are closed, and all is written to disk.
        server.send_signal(signal.SIGINT)
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while not self._has_ended(server):
            if time.monotonic() > deadline:
                raise ConfigurationError(f"the embedded PostgreSQL does not stop; see {self.log}")
            time.sleep(PAUSE_SECONDS)

    def _has_ended(self, server: psutil.Process) -> bool:
        """Whether the server has ended, be it that its parent, which may be another program, has not collected it yet."""
        if self._child:
            self._child.poll()
        try:
            return not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    @property
    def _record(self) -> Path:
        return self.data / "postmaster.pid"

    def _recorded_pid(self) -> int:
        return int(self._record.read_text().split("\n", 1)[0])

    def _works_here(self, pid: int) -> bool:
        return psutil.Process(pid).cwd() == str(self.data.resolve())

    def _wait_for_orphans(self) -> None:
        """Wait until the children of a killed server have noticed and let go of its data."""
        data = str(self.data.resolve())
        deadline = time.monotonic() + ORPHANS_TIMEOUT_SECONDS
        while any(process.info["cwd"] == data for process in psutil.process_iter(["cwd"])):
            if time.monotonic() > deadline:
                raise ConfigurationError(f"processes of a server that was killed still use {self.data}")
            time.sleep(0.1)

    def _answers(self, pid: int) -> bool:
        """Whether the live server `pid` takes connections, waiting for one that still starts, recovers or stops."""
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            try:
                if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                    return False
            except psutil.NoSuchProcess:
                return False
            if postgres_binaries.accepts_connections(self.socket_directory):
                return True
            time.sleep(0.05)
        raise ConfigurationError(f"the embedded PostgreSQL (process {pid}) does not answer; see {self.log}")
