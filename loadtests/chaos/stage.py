"""Faults, and the environment in which they are injected: the service as in production, with access to its processes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from loadtests import usage
from loadtests.chaos.clients import Scene
from loadtests.chaos.log import Log
from loadtests.harness import Database
from loadtests.service import Service, ServiceError, Settings, becomes_true

WAIT_SECONDS = 120


class SkippedError(Exception):
    """The fault cannot be injected on this machine; the message gives the reason."""


@dataclass(frozen=True)
class Stage:
    """The environment of a fault.

    `service` is `manage.py serve`, `seconds` the duration of the fault. `scene` is the environment of the clients, and `log`
    that of the clients that belong to the fault; both are None in a campaign, which has other clients.
    """

    service: Service
    seconds: float
    scene: Scene | None = None
    log: Log | None = None

    @property
    def data(self) -> Path:
        """The data directory of the service."""
        return self.service.settings.data.resolve()

    def databases(self) -> list[psutil.Process]:
        """All processes of PostgreSQL."""
        return usage.processes_in(self.data / "postgres" / "data")

    @property
    def database(self) -> Database:
        """PostgreSQL."""
        return Database(f"postgresql://cdb@/cdb?host={self.data}/postgres/socket")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds. Raises `ServiceError` with the words `what` if it does not in time."""
        ended = self.service.process.poll
        if not becomes_true(lambda: condition() or ended() is not None, WAIT_SECONDS) or ended() is not None:
            raise ServiceError(f"{what} within {WAIT_SECONDS} s: {self.service.lines[-5:]}")


@dataclass(frozen=True)
class Place:
    """What the faults meet: `service` has the address for the harness, `commands` the settings for commands of manage.py.

    Clients use `hosts`, which are addresses of the service. `settle` waits until nothing is failing any more.
    """

    service: Service
    commands: Settings
    hosts: Sequence[str]
    settle: Callable[[], None]


@dataclass(frozen=True)
class Fault:
    """A fault.

    `what` describes it, `since` describes the moment from which recovery counts. `cause` injects and removes it, and
    returns that moment (`time.monotonic`), or None if it is that of its return. With `ends_connections`, clients get no
    response until that moment, and repeat their requests. With `has_clients`, it needs `Stage.scene`. `recovery_seconds`
    after that moment, the service must respond correctly.
    """

    name: str
    what: str
    since: str
    cause: Callable[[Stage], float | None]
    ends_connections: bool = False
    has_clients: bool = False
    recovery_seconds: float = 2.0


# In the order of their definition: those of one host, and those of `make cluster`.
FAULTS: list[Fault] = []
CLUSTER_FAULTS: list[Fault] = []


def fault(
    name: str,
    what: str,
    since: str,
    *,
    into: list[Fault] = FAULTS,
    ends_connections: bool = False,
    has_clients: bool = False,
    recovery_seconds: float = 2.0,
    **options: Any,
) -> Callable[[Any], Any]:
    """A decorator that adds a fault, whose cause is the function with these options. The lowest of several is the first."""

    def add(cause: Callable[..., float | None]) -> Callable[..., float | None]:
        prepared = partial(cause, **options)
        into.append(Fault(name, what, since, prepared, ends_connections, has_clients, recovery_seconds))
        return cause

    return add
