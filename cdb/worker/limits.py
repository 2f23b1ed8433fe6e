"""How many requests a process takes at a time."""

from collections import Counter, deque
from time import monotonic

from cdb import env
from cdb.serving.pools import REQUESTS_OF_A_THREAD
from cdb.worker.connection import Connection
from cdb_rest.metrics.place import here

VALUES = env.read()
MOST_BYTES = VALUES["CDB_MAX_BODY_BYTES"]
# A body of this size or more is large: all large ones in progress together are no larger than one may be. The others wait,
# which holds no thread, and which clients that send so much expect.
LARGE_BYTES = 1024 * 1024
LARGE_QUEUE_SECONDS = 3 * VALUES["CDB_QUEUE_TIMEOUT_SECONDS"]


class Limits:
    """The limits of one process; only its main loop uses them.

    - Large bodies: no more bytes together than one body may have. Those that come meanwhile wait.
    - In the pool of writes and long reads: `REQUESTS_OF_A_THREAD` complete requests for each thread, of which half may
      be one address's.
    """

    def __init__(self, threads: int) -> None:
        self._most = REQUESTS_OF_A_THREAD * threads if here.pool == "others" else None
        self._requests: Counter[str] = Counter()
        self._large_bytes = 0
        self._large: deque[Connection] = deque()

    def may_queue(self, conn: Connection) -> bool:
        """Count a complete request; returns whether there is room for it."""
        if self._most is None:
            return True
        address = conn.address
        if self._requests.total() >= self._most or self._requests[address] >= self._most // 2:
            return False
        self._requests[address] += 1
        conn.queued_as = address
        return True

    def admit(self, conn: Connection) -> list[Connection]:
        """Add a complete request; returns the requests that may go to a thread now."""
        if conn.reader.size < LARGE_BYTES:
            return [conn]
        self._large.append(conn)
        return self._next_large()

    def release(self, conn: Connection) -> list[Connection]:
        """Count no longer a request that was answered; returns those that may go to a thread now."""
        if conn.queued_as is not None:
            self._requests[conn.queued_as] -= 1
            # Addresses that ask nothing any more are forgotten.
            self._requests += Counter()
            conn.queued_as = None
        self._large_bytes -= conn.admitted_bytes
        conn.admitted_bytes = 0
        return self._next_large()

    def overdue(self) -> list[Connection]:
        """Take out the large requests that have waited too long."""
        found = []
        while self._large and monotonic() - self._large[0].waits_since > LARGE_QUEUE_SECONDS:
            found.append(self._large.popleft())
        return found

    def _next_large(self) -> list[Connection]:
        admitted = []
        while self._large and self._large_bytes + self._large[0].reader.size <= MOST_BYTES:
            conn = self._large.popleft()
            # From here on it waits for a thread alone.
            conn.waits_since = monotonic()
            conn.admitted_bytes = conn.reader.size
            self._large_bytes += conn.admitted_bytes
            admitted.append(conn)
        return admitted
