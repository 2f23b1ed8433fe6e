"""Users that wait until all of them are there, so that a storm begins at one moment."""

import gevent
from gevent.event import Event
from locust import User
from locust.user.users import LOCUST_STATE_STOPPING

from loadtests.recording.clock import now

LOOK_SECONDS = 0.05

# Set when the users of all processes are there, and when that was.
all_there = Event()
_since = 0.0


def begin() -> None:
    """Let all begin now."""
    global _since
    _since = now()
    all_there.set()


def wait(user: User) -> float:
    """Wait for the others, or for the end of the test; returns the moment (seconds since the epoch) at which all were due."""
    # Of thousands that wait for the event itself with a timeout, gevent wakes only some.
    while user._state != LOCUST_STATE_STOPPING and not all_there.is_set():
        gevent.sleep(LOOK_SECONDS)
    return _since or now()
