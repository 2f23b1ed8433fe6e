"""One of the programs that `make serve` runs: started, started again when it ends by itself, stopped."""

import contextlib
import os
import shutil
import signal
from abc import ABC, abstractmethod
from pathlib import Path

from cdb.env import ConfigurationError
from cdb.processes.child import Child

# Debian keeps programs for administrators where the path of other accounts does not lead.
MORE_PATHS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
PACKAGES = {"nginx": "nginx-light", "pgbouncer": "pgbouncer"}


def find(name: str) -> str:
    """The path of an installed program. Raises `ConfigurationError` that names the package it comes in."""
    found = _path_of(name)
    if found is None:
        missing = [package for program, package in PACKAGES.items() if _path_of(program) is None]
        raise ConfigurationError(f"make serve needs {name}; on Debian or Ubuntu: apt-get install {' '.join(missing)}")
    return found


def _path_of(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(MORE_PATHS))


def append_to(path: Path) -> int:
    """A descriptor that appends to a log which only its owner can read."""
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    # One that an earlier version made may be readable by all.
    os.fchmod(log, 0o600)
    return log


class Program(ABC):
    """A program and the process it runs in at the moment; subclasses say how it is launched and when it is ready."""

    name: str
    # What asks it to let requests in progress end, and what asks it to end at once.
    gently = signal.SIGTERM
    at_once = signal.SIGQUIT

    def __init__(self) -> None:
        self.process: Child | None = None
        # Processes that were replaced and finish what they have.
        self._leaving: list[Child] = []
        # Groups of processes whose first one was killed: the others finish what they have.
        self._orphans: set[int] = set()

    @abstractmethod
    def start(self) -> None:
        """Start it; it may not be ready by the return."""

    @property
    def started(self) -> Child:
        """The process that `start` has left."""
        if self.process is None:
            raise AssertionError(f"{self.name} was not started")
        return self.process

    @abstractmethod
    def wait_until_ready(self) -> None:
        """Return when it is ready. Raises `ConfigurationError` if it does not become so."""

    def revive(self) -> bool:
        """Start it again if it has ended. Returns whether it had to be."""
        self._orphans = {group for group in self._orphans if _signal_group(group, 0)}
        self._leaving = [process for process in self._leaving if process.poll() is None]
        if self.process is None or self.process.poll() is None:
            return False
        if _signal_group(self.process.pid, self.gently):
            self._orphans.add(self.process.pid)
        self.start()
        return True

    def running(self) -> list[Child]:
        """Its processes that have not ended."""
        processes = [self.process, *self._leaving] if self.process else self._leaving
        return [process for process in processes if process.poll() is None]

    def send(self, number: signal.Signals) -> None:
        """Send its processes a signal."""
        for process in self.running():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

    def end_orphans(self) -> None:
        """End at once what is left of processes that were killed, be it a moment ago."""
        last = {self.process.pid} if self.process and self.process.poll() is not None else set()
        for group in self._orphans | last:
            _signal_group(group, signal.SIGKILL)


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a group of processes. Returns whether there is one."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True
