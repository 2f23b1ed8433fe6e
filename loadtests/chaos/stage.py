"""What a fault is, and what it works on."""

from collections.abc import Callable
from dataclasses import dataclass

from loadtests.chaos.clients import Log, Scene
from loadtests.chaos.service import Serving
from loadtests.standby import Standby


class SkippedError(Exception):
    """The fault can't be made on this machine; the message says why."""


@dataclass(frozen=True)
class Stage:
    """What a fault works on: the service, what clients work with, how long it lasts (seconds), a log for its clients, and the
    replica, if there is one."""

    serving: Serving
    scene: Scene
    seconds: float
    log: Log
    standby: Standby | None = None


@dataclass(frozen=True)
class Fault:
    """A fault: its name, what is done, from when recovery counts, the function that does it, and whether the service then reads
    from a replica."""

    name: str
    what: str
    since: str
    cause: Callable[[Stage], float]
    with_replica: bool = False
