"""Faults, and the environment in which they are injected: the service as in production, with access to its processes."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from loadtests import usage
from loadtests.chaos.clients import Scene
from loadtests.chaos.log import Log
from loadtests.database import Database
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
        """All processes of PostgreSQL."""
        return usage.processes_in(self.data / "postgres" / "data")

    @property
    def database(self) -> Database:
        """PostgreSQL."""
        return Database(f"postgresql://cdb@/cdb?host={self.data}/postgres/socket")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds. Raises `ServiceError` with the words `what` if it does not in time."""
        if not becomes_true(condition, WAIT_SECONDS):
            raise ServiceError(f"{what} within {WAIT_SECONDS} s: {self.service.lines[-5:]}")


@dataclass(frozen=True)
class Fault:
    """A fault.

    `what` describes it, `since` describes the moment from which recovery counts. `cause` injects and removes it, and
    returns that moment (`time.monotonic`), or None if it is that of its return. With `with_replica` the service reads
    from a replica. With `ends_connections`, clients get no response until that moment, and repeat their requests.
    """

    name: str
    what: str
    since: str
    cause: Callable[[Stage], float | None]
    with_replica: bool = False
    ends_connections: bool = False


# In the order of their definition.
FAULTS: list[Fault] = []


def fault(
    name: str, what: str, since: str, *, with_replica: bool = False, ends_connections: bool = False, **options: Any
) -> Callable[[Any], Any]:
    """A decorator that adds a fault, whose cause is the function with these options. The lowest of several is the first."""

    def add(cause: Callable[..., float | None]) -> Callable[..., float | None]:
        FAULTS.append(Fault(name, what, since, partial(cause, **options), with_replica, ends_connections))
        return cause

    return add
