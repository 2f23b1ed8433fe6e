"""Users that wait until all of them are there, so that a storm begins at one moment."""

import gevent
from gevent.event import Event
from locust import User
from locust.user.users import LOCUST_STATE_STOPPING

LOOK_SECONDS = 0.05

# Set when the users of all processes are there.
all_there = Event()


def wait(user: User) -> None:
    """Wait for the others, or for the end of the test."""
    # Of thousands that wait for the event itself with a timeout, gevent wakes only some.
    while user._state != LOCUST_STATE_STOPPING and not all_there.is_set():
        gevent.sleep(LOOK_SECONDS)
