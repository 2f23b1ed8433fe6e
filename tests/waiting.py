"""Waiting for what other threads and processes do."""

import socket
import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float = 60, pause: float = 0.2) -> None:
    """Wait until a condition holds. Fails after the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(pause)


def eventually(look: Callable[[], object], expected: object, seconds: float = 30) -> None:
    """Wait until what is looked at is as expected: an answer is counted a moment after its client has it."""
    deadline = time.monotonic() + seconds
    while (found := look()) != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    assert found == expected, f"{found} instead of {expected}"


def is_open(port: int) -> bool:
    """Whether a port of this machine takes connections."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
