"""The connections that the main loop waits for, each until a deadline."""

from collections.abc import Callable, Iterator
from functools import partial
from selectors import BaseSelector
from typing import NamedTuple

from cdb.worker.connection import Connection


class Wait(NamedTuple):
    """A deadline on the monotonic clock, and what to call after it."""

    expires: float
    expired: Callable[[], None]


class Waits:
    """The connections that are registered with the poller of the main loop, with their deadlines."""

    def __init__(self, poller: BaseSelector) -> None:
        self._poller = poller
        self._waits: dict[Connection, Wait] = {}

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._waits)

    def add(
        self,
        conn: Connection,
        event: int,
        ready: Callable[..., None],
        expires: float,
        expired: Callable[[Connection], None],
    ) -> None:
        """Call `ready` whenever the connection can be read from or written to, and `expired` after the deadline.

        For a connection that is there already, it only changes the deadline.
        """
        is_new = conn not in self._waits
        self._waits[conn] = Wait(expires, partial(expired, conn))
        if is_new:
            self._poller.register(conn.sock, event, partial(ready, conn))

    def remove(self, conn: Connection) -> None:
        """Stop waiting for a connection, which need not be there."""
        if self._waits.pop(conn, None):
            self._poller.unregister(conn.sock)

    def expire(self, now: float) -> None:
        """Call what is to be called for the connections whose deadline has passed."""
        for wait in list(self._waits.values()):
            if now > wait.expires:
                wait.expired()
