"""Running the real service and the commands of manage.py as child processes, with the settings of the harness."""

import contextlib
import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from cdb.env import ROOT
from loadtests import child_process
from loadtests.child_process import Finished

START_SECONDS = 120
STOP_SECONDS = 60
PORTS, PORT_TRIES = (20_000, 32_000), 100
PREFIX = "/api/cdb_rest/"
# Prefixes of environment variables that must not leak in from the operator's shell.
HIDDEN = ("CDB_", "DATABASE_URL", "PORT", "SCENARIO", "DEBUG", "PG", "DJANGO_", "MAKE", "MFLAGS")


class ServiceError(Exception):
    """The service or one of its commands failed; the message has the end of its output."""


@dataclass(frozen=True)
class Settings:
    """The data directory of an instance, and its other settings as environment variables."""

    data: Path
    extra: dict[str, str]

    def environment(self, **more: str) -> dict[str, str]:
        """The complete environment of a process."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(HIDDEN)}
        fixed = {"CDB_ENV_FILE": os.devnull, "CDB_DATA_DIR": str(self.data), "SCENARIO": "none", "CDB_STRATEGIES": "1"}
        # Some strategies exceed the default timeout of lookups.
        fixed["CDB_LOOKUP_TIMEOUT_SECONDS"] = "60"
        return clean | fixed | self.extra | more

    def with_database(self, url: str) -> "Settings":
        """The same settings with another database."""
        return Settings(self.data, self.extra | {"DATABASE_URL": url})


def run_command(settings: Settings, *arguments: str) -> Finished:
    """Run a Python program, such as `manage.py seed_scenario tiny`, to its end; it is stopped if we are interrupted."""
    return child_process.run([sys.executable, *arguments], cwd=ROOT, env=settings.environment(), stop=_stop)


def manage(settings: Settings, *arguments: str) -> Finished:
    """Run a command of manage.py. Raises `ServiceError` with the last line of its output if it fails."""
    finished = run_command(settings, "manage.py", *arguments)
    if finished.code:
        lines = finished.output.strip().splitlines() or ["no output"]
        if any(line.startswith("Unknown command") for line in lines):
            raise ServiceError(f"manage.py has no command {arguments[0]}")
        raise ServiceError(f"manage.py {arguments[0]} failed: {lines[-1]}")
    return finished


class Service:
    """A running `manage.py run` or `manage.py serve`."""

    def __init__(self, process: subprocess.Popen, port: int, workers: int, command: str) -> None:
        self.process = process
        self.command = command
        self.port = port
        self.workers = workers

    def url(self, path: str) -> str:
        """The URL of a route of the API."""
        return f"http://127.0.0.1:{self.port}{PREFIX}{path}"

    def lookup_url(self, tag: str, route: str = "payloadiovs/") -> str:
        """The URL of a lookup without the moment, which the load generator appends."""
        return self.url(f"{route}?gtName={tag}")

    def application(self) -> psutil.Process:
        """The root of the processes that serve requests: gunicorn for `run`.

        For `serve` the supervisor of all its programs. The database is not among them.
        """
        return self.gunicorn() if self.command == "run" else psutil.Process(self.process.pid)

    def gunicorn(self) -> psutil.Process:
        """gunicorn's master process. Raises `ServiceError` if there is none."""
        for child in psutil.Process(self.process.pid).children():
            if any("gunicorn" in word for word in child.cmdline()):
                return child
        raise ServiceError("gunicorn is not running")


def start(environment: dict[str, str], *arguments: str, output: int | IO[str]) -> subprocess.Popen:
    """Start a Python program of the project, such as `manage.py serve`, in a session of its own, without input."""
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=environment, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
    )  # fmt: skip


@contextlib.contextmanager
def running(settings: Settings, *, workers: int = 3, command: str = "run", **extra: str) -> Iterator[Service]:
    """Serve inside the block with `manage.py run` or another command.

    Raises `ServiceError` if the service does not start.
    """
    port = free_port()
    with tempfile.TemporaryFile("w+") as output:
        environment = settings.environment(PORT=str(port), CDB_WORKERS=str(workers), **extra)
        process = start(environment, "manage.py", command, output=output)
        try:
            if not _becomes_ready(process, port):
                output.seek(0)
                raise ServiceError(f"the service did not start: {' '.join(output.read().split())[-500:]}")
            yield Service(process, port, workers, command)
        finally:
            _stop(process)


def _becomes_ready(process: subprocess.Popen, port: int) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
            connection.request("GET", "/health/ready")
            if connection.getresponse().status == 200:
                return True
        time.sleep(0.1)
    return False


def _stop(process: subprocess.Popen) -> None:
    """Terminate a process; if it does not exit in time, kill it and its descendants."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        process.kill()
        process.wait()


def free_port() -> int:
    """A free TCP port on 127.0.0.1. Raises `ServiceError` if none is found.

    It is below the kernel's range of ephemeral ports, of which the load generator uses thousands.
    """
    for _ in range(PORT_TRIES):
        port = random.randrange(*PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ServiceError(f"no free port was found among {PORTS}")
