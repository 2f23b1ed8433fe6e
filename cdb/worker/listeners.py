"""The listening sockets of a process, as far as they are closed to further connections during an overload."""

from collections.abc import Sequence
from socket import AF_UNIX, socket

# The length of the kernel's queue of a Unix socket during an overload. A proxy that connects when it is full fails at
# once, so that it refuses requests itself, which costs less than a refusal by the worker.
OVERLOAD_BACKLOG = 8


class Listeners:
    """Listening sockets, which all processes of an instance share. `backlog` is the usual length of the kernel's queues.

    `can_refuse` says whether a client fails at once if the queue is full. A client that connects by TCP would try again
    for seconds instead. `is_short` says whether the queues are short.
    """

    def __init__(self, sockets: Sequence[socket], backlog: int) -> None:
        self._sockets = sockets
        self._backlog = backlog
        self.can_refuse = all(one.family == AF_UNIX for one in sockets)
        # A process that was killed during an overload may have left the queues short.
        self.is_short = True

    def set_short(self, is_short: bool) -> None:
        """Make the kernel's queues short, or as long as usual."""
        if is_short == self.is_short:
            return
        self.is_short = is_short
        for one in self._sockets:
            one.listen(OVERLOAD_BACKLOG if is_short else self._backlog)
