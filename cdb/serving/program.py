"""The base class of the programs that `make serve` starts, restarts and stops."""

import contextlib
import os
import shutil
import signal
from abc import ABC, abstractmethod
from pathlib import Path

from cdb.env import ConfigurationError
from cdb.processes import signals
from cdb.processes.child import Child

# Debian installs some programs in directories that are not in the PATH of ordinary accounts.
MORE_PATHS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
PACKAGES = {"nginx": "nginx-light", "pgbouncer": "pgbouncer"}


def find(name: str) -> str:
    """The path of a program. Raises `ConfigurationError` with the names of missing packages if it is not installed."""
    found = _path_of(name)
    if found is None:
        missing = [package for program, package in PACKAGES.items() if _path_of(program) is None]
        raise ConfigurationError(f"make serve needs {name}; on Debian or Ubuntu: apt-get install {' '.join(missing)}")
    return found


def _path_of(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(MORE_PATHS))


def append_to(path: Path) -> int:
    """A descriptor for appending to a log file, which is created if necessary and which only its owner can read.

    The caller must close it.
    """
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    # Earlier versions created log files that all accounts can read.
    os.fchmod(log, 0o600)
    return log


class Program(ABC):
    """A program and its current process. Subclasses define how it is started and when it is ready."""

    name: str
    # The signal that stops it after the requests in progress have finished, and the one that stops it immediately.
    graceful_signal = signal.SIGTERM
    immediate_signal = signal.SIGQUIT

    def __init__(self) -> None:
        self.process: Child | None = None
        # Processes that were replaced and finish their requests.
        self._retiring: list[Child] = []
        # Process groups whose leader was killed and whose other processes finish their requests.
        self._orphans: set[int] = set()

    def start(self) -> None:
        """Start the program, without waiting until it is ready.

        Raises `ConfigurationError` if it is not installed. A process that runs already must be in `_retiring`.
        """
        # A signal before the assignment would leave a process that nothing stops.
        with signals.deferred():
            self.process = self._start_process()

    @abstractmethod
    def _start_process(self) -> Child:
        """Start a process of the program, without waiting until it is ready."""

    @property
    def started(self) -> Child:
        """The current process. Raises `AssertionError` if the program was not started."""
        if self.process is None:
            raise AssertionError(f"{self.name} was not started")
        return self.process

    @abstractmethod
    def wait_until_ready(self) -> None:
        """Wait until the program is ready. Raises `ConfigurationError` if it does not become ready."""

    def restart_if_ended(self) -> bool:
        """Restart the program if it was started and has ended, without waiting until it is ready.

        Other processes of its group finish their requests. Returns whether the program was restarted.
        """
        self._orphans = {group for group in self._orphans if _signal_group(group, 0)}
        self._retiring = [process for process in self._retiring if process.poll() is None]
        if self.process is None or self.process.poll() is None:
            return False
        if _signal_group(self.process.pid, self.graceful_signal):
            self._orphans.add(self.process.pid)
        self.start()
        return True

    def running(self) -> list[Child]:
        """The current and the replaced processes that have not ended."""
        processes = [self.process, *self._retiring] if self.process else self._retiring
        return [process for process in processes if process.poll() is None]

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the current and the replaced processes."""
        for process in self.running():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

    def end_orphans(self) -> None:
        """Kill the remaining processes of groups whose leader has ended."""
        last = {self.process.pid} if self.process and self.process.poll() is not None else set()
        for group in self._orphans | last:
            _signal_group(group, signal.SIGKILL)


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group. Returns whether the group exists."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True
