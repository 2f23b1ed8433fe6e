"""The process of a PostgreSQL server on one data directory: its state, start and stop.

A server that was killed leaves its PID file behind. The file is trusted only if the process that it names has the data
directory as its working directory.
"""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from cdb.embedded import postgres_binaries
from cdb.env import ConfigurationError
from cdb.processes import signals
from cdb.processes.child import Child

# Crash recovery may take long before the server accepts connections.
START_TIMEOUT_SECONDS = 600
STOP_TIMEOUT_SECONDS = 60
ORPHANS_TIMEOUT_SECONDS = 30
PAUSE_SECONDS = 0.02


class PostgresProcess:
    """The server on the data directory `data`, which this or another process may have started.

    The server appends its messages to the file `log`. `socket_directory` is the directory of its Unix socket.
    `options` are the settings, by name, with which `start` starts it. The caller must hold a lock, so that only one
    process at a time calls `is_running`, `start` or `stop`. `is_alive` needs no lock. Methods other than `is_alive`
    raise `ConfigurationError`, with a message of one line, or `OSError`.
    """

    def __init__(self, *, data: Path, log: Path, socket_directory: Path, options: dict[str, str]) -> None:
        self.data = data
        self.log = log
        self.socket_directory = socket_directory
        self.options = options
        self._child: Child | None = None

    def is_alive(self) -> bool:
        """Whether the PID file names a process that works in the data directory. Returns immediately.

        The server may not accept connections yet. The result is False before the server has written its PID file.
        """
        try:
            return self._runs_in_data_directory(self._recorded_pid())
        except (OSError, ValueError, psutil.Error):
            return False

    def is_running(self) -> bool:
        """Wait while the server starts, recovers or stops. Returns whether it then accepts connections.

        If the server was killed, waits for the end of its child processes and removes its PID and socket files.
        Raises `ConfigurationError` after `START_TIMEOUT_SECONDS`, or after `ORPHANS_TIMEOUT_SECONDS` for the children.
        """
        try:
            pid = self._recorded_pid()
            if self._runs_in_data_directory(pid) and self._accepts_connections(pid):
                return True
        except FileNotFoundError:
            return False
        except (ValueError, psutil.Error):
            pass
        self._wait_for_orphans()
        # The process id may now belong to another program or to a zombie, and PostgreSQL would take either
        # for the running server. The lock file beside the socket has the same content.
        for leftover in (self._pid_file, *self.socket_directory.glob(".s.PGSQL.*")):
            leftover.unlink(missing_ok=True)
        return False

    def start(
        self,
        *,
        ends_with_parent: bool = False,
        on_wait: Callable[[int], None] = lambda pid: None,
        timeout: float = START_TIMEOUT_SECONDS,
    ) -> None:
        """Start the server, and wait until it accepts connections.

        The server must not be running, and no PID file of a killed server may exist (`is_running` removes it). While
        this method waits, it calls `on_wait` repeatedly with the process id of the server. With `ends_with_parent`,
        Linux sends SIGTERM to the server when the calling thread ends. Without it, the server may outlive this process.

        Raises `ConfigurationError` if the server ends, or does not accept connections within `timeout` seconds. After
        such a timeout the server continues to run; call `stop`.
        """
        # The setting is a list, so its only element is quoted.
        quoted = str(self.socket_directory).replace('"', '""')
        options = self.options | {"unix_socket_directories": f'"{quoted}"'}
        # Kept, so that a server that ends before this process does not remain as a zombie. A signal before the assignment
        # would leave a server that `stop` does not find, because it has no PID file yet.
        with signals.deferred():
            self._child = postgres_binaries.start_server(
                self.data, self.log, options, ends_with_parent=ends_with_parent
            )
        if not self._accepts_connections(self._child.pid, on_wait, timeout):
            # Not the answers to our own attempts to connect, such as "the database system is starting up".
            said = [
                line
                for line in self.log.read_text(errors="replace").splitlines()
                if "FATAL" in line and "the database system is" not in line
            ]
            raise ConfigurationError(
                f"the embedded PostgreSQL did not start: {said[-1] if said else 'see its log'} ({self.log})"
            )

    def stop(self) -> None:
        """Stop the server if it runs, and wait until it has ended. Open connections are aborted (fast shutdown).

        Waits first as `is_running` does if another process started the server. Raises `ConfigurationError` if the
        server has not ended after `STOP_TIMEOUT_SECONDS`.
        """
        if self._child and self._child.poll() is None:
            # The server may have started so recently that it has no PID file yet.
            server = psutil.Process(self._child.pid)
        elif self.is_running():
            server = psutil.Process(self._recorded_pid())
        else:
            return
        # SIGINT is a fast shutdown: it aborts connections and writes all data to disk.
        server.send_signal(signal.SIGINT)
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while not self._has_ended(server):
            if time.monotonic() > deadline:
                raise ConfigurationError(
                    f"the embedded PostgreSQL has not stopped within {STOP_TIMEOUT_SECONDS} s; see {self.log}"
                )
            time.sleep(PAUSE_SECONDS)

    def _has_ended(self, server: psutil.Process) -> bool:
        """Whether the server has ended. A zombie counts as ended: its parent may be another program."""
        if self._child:
            self._child.poll()
        try:
            return not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    @property
    def _pid_file(self) -> Path:
        return self.data / "postmaster.pid"

    def _recorded_pid(self) -> int:
        return int(self._pid_file.read_text().split("\n", 1)[0])

    def _runs_in_data_directory(self, pid: int) -> bool:
        return psutil.Process(pid).cwd() == str(self.data.resolve())

    def _wait_for_orphans(self) -> None:
        """Wait until the child processes of a killed server have ended. Raises `ConfigurationError` on timeout."""
        data = str(self.data.resolve())
        deadline = time.monotonic() + ORPHANS_TIMEOUT_SECONDS
        while any(process.info["cwd"] == data for process in psutil.process_iter(["cwd"])):
            if time.monotonic() > deadline:
                raise ConfigurationError(f"processes of a server that was killed still use {self.data}")
            time.sleep(0.1)

    def _accepts_connections(
        self, pid: int, on_wait: Callable[[int], None] = lambda pid: None, timeout: float = START_TIMEOUT_SECONDS
    ) -> bool:
        """Wait while the server `pid` starts, recovers or stops.

        Returns True if it accepts connections, False if it has ended. Raises `ConfigurationError` after `timeout`
        seconds.
        """
        begin = time.monotonic()
        while (waited := time.monotonic() - begin) < timeout:
            try:
                if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                    return False
            except psutil.NoSuchProcess:
                return False
            if postgres_binaries.accepts_connections(self.socket_directory):
                return True
            on_wait(pid)
            time.sleep(min(1, max(0.05, waited / 20)))
        raise ConfigurationError(f"the embedded PostgreSQL (process {pid}) does not accept connections; see {self.log}")
