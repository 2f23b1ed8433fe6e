"""The complete requests of a process that wait for a thread, in the order of their arrival."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from time import monotonic

from cdb.worker.connection import Connection
from cdb.worker.limits import QUEUE_SECONDS


class RequestQueue:
    """The queue of the thread pool, with the connection of each request. Only the main loop uses it."""

    def __init__(self) -> None:
        self._requests: deque[tuple[Connection, Future[bool]]] = deque()

    def append(self, conn: Connection, future: Future[bool]) -> None:
        """Add a request that was passed to the thread pool; `future` is what the pool returned."""
        self._requests.append((conn, future))

    def __len__(self) -> int:
        """The number of requests that no thread has started to handle."""
        # The pool starts them in their order.
        while self._requests and not _is_pending(self._requests[0][1]):
            self._requests.popleft()
        return len(self._requests)

    def cancel_overdue(self) -> Iterator[Connection]:
        """Remove the requests that have waited for `QUEUE_SECONDS`, and yield their connections. No thread handles them."""
        while len(self) and monotonic() - self._requests[0][0].waits_since > QUEUE_SECONDS:
            conn, future = self._requests.popleft()
            # A thread may have started it at this moment.
            if future.cancel():
                yield conn


def _is_pending(future: Future[bool]) -> bool:
    return not (future.running() or future.done())
