"""The reload of a running `make serve` with new code and settings: python -m cdb.serving.reload

First `manage.py prepare` loads the new code in a process of its own, checks it, and applies migrations. If that fails, nothing is
signalled and the old code goes on. This module imports little, so that it also works when the new code does not.
"""

import http.client
import os
import socket
import subprocess
import sys
import time
import xmlrpc.client
from pathlib import Path
from typing import Any

from supervisor.xmlrpc import SupervisorTransport  # type: ignore[import-untyped]

from cdb.env import ROOT, ConfigurationError
from cdb.serving import layout

TIMEOUT_SECONDS = 300
PROBES = 20


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
        # One after the other: while the processes of both start, requests would wait too long.
        for name, server in (("granian", "lookups"), ("gunicorn", "others")):
            supervisor.signalProcess(name, "HUP")
            _wait_for_new(sockets / f"{server}.sock", begin)
        # A needless reload of nginx would close idle connections.
        if _nginx_configuration() != nginx_before:
            supervisor.signalProcess("nginx", "HUP")
        supervisor.stopProcess("compiler")
        supervisor.startProcess("compiler", False)
    except (ConfigurationError, OSError, xmlrpc.client.Error) as error:
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


def _wait_for_new(path: Path, begin: float) -> None:
    """Wait until several requests in a row are answered by processes that have started after `begin`."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    new = 0
    while new < PROBES:
        new = new + 1 if _started(path) > begin else 0
        if time.monotonic() > deadline:
            raise ConfigurationError(
                f"the new code does not answer after {TIMEOUT_SECONDS} s; see {layout.directory()}"
            )
        if not new:
            time.sleep(0.2)


def _started(path: Path) -> float:
    """When the process that answers at a socket was started, in seconds since 1970; 0 if none answers."""
    connection = http.client.HTTPConnection("127.0.0.1", timeout=5)
    try:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(5)
        connection.sock.connect(os.fspath(path))
        connection.request("GET", "/health/live", headers={"Connection": "close"})
        return float(connection.getresponse().headers.get("CDB-Started", 0))
    except (OSError, ValueError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
