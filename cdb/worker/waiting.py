"""The connections that the main loop waits for, each with a deadline."""

from collections.abc import Callable, Iterator
from functools import partial
from selectors import BaseSelector
from typing import NamedTuple

from cdb.worker.connection import Connection


class Deadline(NamedTuple):
    """A deadline on the monotonic clock, and the function that is called after it."""

    expires: float
    expired: Callable[[], None]


class WaitingConnections:
    """A collection of the connections that are registered with the poller of the main loop, with their deadlines.

    Only the main loop uses it.
    """

    def __init__(self, poller: BaseSelector) -> None:
        self._poller = poller
        self._deadlines: dict[Connection, Deadline] = {}

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._deadlines)

    def add(
        self,
        conn: Connection,
        event: int,
        ready: Callable[..., None],
        expires: float,
        expired: Callable[[Connection], None],
    ) -> None:
        """Register a connection with a deadline, until `remove`.

        `ready` is called with the connection and its socket whenever `event` occurs: `selectors.EVENT_READ` or
        `EVENT_WRITE`. `expired` is called with the connection after the time `expires`, on the monotonic clock. If the
        connection is already registered, only `expires` and `expired` change.
        """
        is_new = conn not in self._deadlines
        self._deadlines[conn] = Deadline(expires, partial(expired, conn))
        if is_new:
            self._poller.register(conn.sock, event, partial(ready, conn))

    def remove(self, conn: Connection) -> None:
        """Unregister a connection, whose socket must still be open; does nothing if it is not registered."""
        if self._deadlines.pop(conn, None):
            self._poller.unregister(conn.sock)

    def expire(self, now: float) -> None:
        """Call the `expired` function of each connection whose deadline has passed.

        The function must remove the connection or set another deadline. Otherwise the next call calls it again.
        """
        for deadline in list(self._deadlines.values()):
            if now > deadline.expires:
                deadline.expired()
