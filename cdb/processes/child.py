"""Child processes: started in a separate session, terminated when their parent ends, and probed for readiness."""

import ctypes
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cdb.env import ConfigurationError
from cdb.processes import signals

START_TIMEOUT_SECONDS = 60
PROBE_TIMEOUT_SECONDS = 5
PAUSE_SECONDS = 0.05
WAIT_PAUSE_SECONDS = 0.02
PR_SET_PDEATHSIG = 1


class Child(subprocess.Popen[bytes]):
    """A process whose methods defer signals (`cdb.processes.signals`) while they hold the lock of `subprocess`.

    The constructor does not. Call it in a `signals.deferred` block, so that a signal before the assignment does not
    leave a process that the caller can't stop.
    """

    def poll(self) -> int | None:
        """Return the exit code, or None if the process has not ended."""
        with signals.deferred():
            return super().poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit code.

        Raises `subprocess.TimeoutExpired` after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            time.sleep(WAIT_PAUSE_SECONDS)
        return code

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless the process has ended."""
        with signals.deferred():
            super().send_signal(sig)


def start(command: Sequence[str], **more: Any) -> Child:
    """Start a program, in a new session, that gets SIGTERM (on Linux) when the calling thread ends.

    So the caller must be a thread that lives as long as the program. `more` are arguments of `subprocess.Popen`.
    """
    return Child(
        command,
        # The terminal's Ctrl-C must reach only this process, which then stops its children in order.
        start_new_session=True,
        preexec_fn=end_with_parent,
        **more,
    )


def wait_until(process: Child, ready: Callable[[], bool], name: str) -> None:
    """Wait until a started program is ready.

    Raises `ConfigurationError` if it ends before, or if it is not ready after `START_TIMEOUT_SECONDS`.
    """
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not ready():
        if process.poll() is not None:
            raise ConfigurationError(f"{name} ended with code {process.returncode}")
        if time.monotonic() > deadline:
            raise ConfigurationError(f"{name} was not ready within {START_TIMEOUT_SECONDS} s")
        time.sleep(PAUSE_SECONDS)


def is_ready(address: int | Path) -> bool:
    """Whether /health/ready returns 200, at a port of 127.0.0.1 or at a Unix socket."""
    connection = _Connection(address)
    try:
        connection.request("GET", "/health/ready", headers={"Host": "127.0.0.1"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class _Connection(http.client.HTTPConnection):
    def __init__(self, address: int | Path) -> None:
        super().__init__("127.0.0.1", timeout=PROBE_TIMEOUT_SECONDS)
        self._address = address

    def connect(self) -> None:
        if isinstance(self._address, int):
            self.sock = socket.create_connection(("127.0.0.1", self._address), self.timeout)
            return
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self._address))


def end_with_parent() -> None:
    """Make Linux send SIGTERM to this process when the thread that started it ends; does nothing on other systems.

    Runs in the child, as the argument `preexec_fn` of `subprocess.Popen`.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
