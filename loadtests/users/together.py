"""A barrier for users: they wait until all are spawned, so that a storm begins at one moment."""

import gevent
from gevent.event import Event
from locust import User
from locust.user.users import LOCUST_STATE_STOPPING

from loadtests.recording.rows import now

CHECK_INTERVAL_SECONDS = 0.05

# Set when the users of all processes are spawned; `_since` is the time of that.
all_there = Event()
_since = 0.0


def begin() -> None:
    """Release all users now."""
    global _since
    _since = now()
    all_there.set()


def wait(user: User) -> float:
    """Wait for all users or the end of the test; returns the time at which all were due, in seconds since the epoch."""
    # The event is polled: of thousands of greenlets that wait for it with a timeout, gevent wakes only some.
    while user._state != LOCUST_STATE_STOPPING and not all_there.is_set():
        gevent.sleep(CHECK_INTERVAL_SECONDS)
    return _since or now()
