"""Faults, and the environment in which they are injected."""

from collections.abc import Callable
from dataclasses import dataclass

from loadtests.chaos.clients import Log, Scene
from loadtests.chaos.service import Serving
from loadtests.standby import Standby


class SkippedError(Exception):
    """The fault cannot be injected on this machine; the message gives the reason."""


@dataclass(frozen=True)
class Stage:
    """The environment of a fault.

    `serving` is the service, `scene` the environment of its clients, `seconds` the duration of the fault, `log`
    the log of the clients that belong to the fault, `standby` the replica, if there is one.
    """

    serving: Serving
    scene: Scene
    seconds: float
    log: Log
    standby: Standby | None = None


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
