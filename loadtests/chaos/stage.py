"""Faults, and the environment in which they are injected: the service as in production, with access to its processes."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg2

from loadtests import usage
from loadtests.chaos.clients import Scene
from loadtests.chaos.log import Log
from loadtests.service import Service, ServiceError, becomes_true, start
from loadtests.standby import Standby

WAIT_SECONDS = 120


class SkippedError(Exception):
    """The fault cannot be injected on this machine; the message gives the reason."""


@dataclass(frozen=True)
class Stage:
    """The environment of a fault.

    `service` is `manage.py serve`, `scene` the environment of its clients, `seconds` the duration of the fault, `log`
    the log of the clients that belong to the fault, `standby` the replica, if there is one.
    """

    service: Service
    scene: Scene
    seconds: float
    log: Log
    standby: Standby | None = None

    @property
    def data(self) -> Path:
        """The data directory of the service."""
        return self.service.settings.data.resolve()

    def manage(self, *arguments: str) -> subprocess.Popen:
        """Start a command of manage.py with the settings of the service, and return its process."""
        command = [sys.executable, "manage.py", *arguments]
        return start(command, self.service.settings.environment(), subprocess.PIPE)

    def databases(self) -> list[psutil.Process]:
        """All processes of PostgreSQL, beginning with its main process."""
        directory = self.data / "postgres" / "data"
        first = usage.postmaster_id(directory)
        return sorted(usage.processes_in(directory), key=lambda process: process.pid != first)

    def database_url(self) -> str:
        """The libpq URL of PostgreSQL itself, without PgBouncer."""
        return f"postgresql://cdb@/cdb?host={self.data}/postgres/socket"

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds. Raises `ServiceError` with the words `what` if it does not in time."""
        if not becomes_true(condition, WAIT_SECONDS):
            raise ServiceError(f"{what} within {WAIT_SECONDS} s: {self.service.lines[-5:]}")

    def wait_until_database_responds(self) -> None:
        """Wait until PostgreSQL executes a statement on a new connection. Raises `ServiceError` if it does not."""
        self.wait_until(lambda: _responds(self.database_url()), "PostgreSQL did not respond")

    def wait_until_pooler_responds(self) -> None:
        """Wait until PgBouncer executes a statement on a new connection. Raises `ServiceError` if it does not."""
        settings = (self.data / "serve" / "pgbouncer.ini").read_text()
        directory = re.search(r"^unix_socket_dir\s*=\s*(\S+)", settings, re.MULTILINE)[1]
        url = f"postgresql://cdb@/cdb_lookups?host={directory}&port=6432"
        self.wait_until(lambda: _responds(url), "PgBouncer did not respond")


def _responds(url: str) -> bool:
    with (
        contextlib.suppress(psycopg2.Error),
        contextlib.closing(psycopg2.connect(url, connect_timeout=2)) as connection,
    ):
        connection.cursor().execute("SELECT 1")
        return True
    return False


@dataclass(frozen=True)
class Fault:
    """A fault.

    `what` describes it, `since` describes the moment from which recovery counts, `cause` injects and removes it
    and returns that moment. With `with_replica` the service reads from a replica.
    """

    name: str
    what: str
    since: str
    cause: Callable[[Stage], float]
    with_replica: bool = False
