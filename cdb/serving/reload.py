"""The reload of a running `make serve` with new code and settings: python -m cdb.serving.reload

First `manage.py prepare` loads the new code in a process of its own, checks it, and applies migrations. If that fails, nothing is
signalled and the old code goes on. This module imports little, so that it also works when the new code does not.
"""

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from supervisor.xmlrpc import SupervisorTransport  # type: ignore[import-untyped]

from cdb.env import ROOT, ConfigurationError
from cdb.serving import layout

TIMEOUT_SECONDS = 300


def main() -> int:
    """Reload, and print in one line whether the new code answers. Returns the exit code."""
    begin = time.time()
    try:
        sockets = layout.sockets()
        supervisor = _supervisor(sockets)
        nginx_before = _nginx_configuration()
        prepared = subprocess.run(  # noqa: S603
            [sys.executable, str(ROOT / "manage.py"), "prepare"], check=False, cwd=ROOT, capture_output=True, text=True
        )
        if prepared.returncode:
            reason = (prepared.stderr.strip().splitlines() or ["no reason was given"])[-1].removeprefix("cdb: ")
            raise ConfigurationError(f"not reloaded, the old code goes on: {reason}")
        # A needless reload of nginx would close idle connections.
        if _nginx_configuration() != nginx_before:
            _reload(supervisor, "nginx")
        # One after the other: while the processes of both start, requests would wait too long.
        for name, server in (("granian", "lookups"), ("gunicorn", "others")):
            _reload(supervisor, name)
            _wait(partial(_is_new, sockets / f"{server}.sock", begin), "the new code does not answer")
        supervisor.stopProcess("compiler")
        supervisor.startProcess("compiler", False)
    except (ConfigurationError, OSError, psutil.Error, xmlrpc.client.Error) as error:
        sys.stderr.write(f"cdb: {error}\n")
        return 1
    sys.stdout.write(f"Reloaded: the new code answers ({time.time() - begin:.1f} s).\n")
    return 0


def _supervisor(sockets: Path) -> Any:
    """The interface of the running supervisord. Raises `ConfigurationError` if there is none."""
    transport = SupervisorTransport(serverurl=f"unix://{sockets / 'supervisor.sock'}")
    supervisor: Any = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport).supervisor
    try:
        supervisor.getState()
    except OSError as error:
        raise ConfigurationError(f"no make serve runs with {layout.directory()}; check CDB_DATA_DIR") from error
    return supervisor


def _nginx_configuration() -> str:
    return (layout.directory() / "nginx.conf").read_text()


def _reload(supervisor: Any, program: str) -> None:
    """Reload a program, and wait until none of its old processes accepts connections.

    Old processes finish the requests that they have begun. Requests in a row that new ones answer would prove nothing: the
    kernel may give all connections of one client to the same process.
    """
    parent = supervisor.getProcessInfo(program)["pid"]
    old = _accepting(parent)
    supervisor.signalProcess(program, "HUP")
    _wait(lambda: not old & _accepting(parent), f"old processes of {program} still accept requests")


def _accepting(parent: int) -> set[int]:
    """The ids of the child processes, without those of nginx whose titles say that they are shutting down."""
    found = set()
    for process in psutil.Process(parent).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "is shutting down" not in " ".join(process.cmdline()):
                found.add(process.pid)
    return found


def _wait(is_done: Callable[[], bool], problem: str) -> None:
    """Raise `ConfigurationError` with the problem after `TIMEOUT_SECONDS`."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not is_done():
        if time.monotonic() > deadline:
            raise ConfigurationError(f"{problem} after {TIMEOUT_SECONDS} s; see {layout.directory()}")
        time.sleep(0.05)


def _is_new(path: Path, begin: float) -> bool:
    """Whether a process that was started after `begin`, in seconds since 1970, answers at a socket."""
    connection = http.client.HTTPConnection("127.0.0.1", timeout=5)
    try:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(5)
        connection.sock.connect(os.fspath(path))
        connection.request("GET", "/health/live", headers={"Connection": "close"})
        return float(connection.getresponse().headers.get("CDB-Started", 0)) > begin
    except (OSError, ValueError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
