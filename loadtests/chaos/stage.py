"""What a fault is, and what it works on."""

from collections.abc import Callable
from dataclasses import dataclass

from loadtests.chaos.clients import Log, Scene
from loadtests.chaos.service import Serving


class SkippedError(Exception):
    """The fault can't be made on this machine; the message says why."""


@dataclass(frozen=True)
class Stage:
    """What a fault works on: the service, what clients work with, how long it lasts (seconds), and a log for its clients."""

    serving: Serving
    scene: Scene
    seconds: float
    log: Log


@dataclass(frozen=True)
class Fault:
    """A fault: its name, what is done, from when recovery counts, and the function that does it."""

    name: str
    what: str
    since: str
    cause: Callable[[Stage], float]
