"""Users that wait until all of them are there, so that a storm begins at one moment."""

from gevent.event import Event
from locust import User
from locust.user.users import LOCUST_STATE_STOPPING

LOOK_SECONDS = 1.0

# Set when the users of all processes are there.
all_there = Event()


def wait(user: User) -> None:
    """Wait for the others, or for the end of the test."""
    while user._state != LOCUST_STATE_STOPPING and not all_there.wait(LOOK_SECONDS):
        pass
