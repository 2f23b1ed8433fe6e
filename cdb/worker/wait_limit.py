"""The limit on the time for which lookups wait for a thread during an overload.

After a burst, for example when thousands of jobs start at once, all requests may wait until they are handled. An
overload is a queue that has not been empty for `CDB_BURST_SECONDS`. Then a request is accepted only if it will
probably wait less than `CDB_OVERLOAD_WAIT_SECONDS`. This is "controlled delay" as in B. Maurer, "Fail at Scale", ACM
Queue 13 (8), 2015, but applied when a request arrives, so that no request waits in vain.
"""

import mmap
from time import monotonic

from cdb import env
from cdb_rest.metrics import counts
from cdb_rest.metrics.slots import here

VALUES = env.read()
BURST_SECONDS: float = VALUES["CDB_BURST_SECONDS"]
MOST_SECONDS: float = VALUES["CDB_OVERLOAD_WAIT_SECONDS"]
# Requests are accepted again when the wait has fallen to this share of the limit, so that the state changes rarely.
ACCEPT_AGAIN = 0.75
# A queue of this length is always accepted: when the threads go on after an interruption, they empty it at once.
SHORT = 16
# The interval at which the rate of finished requests is measured.
MEASURE_SECONDS = 1.0

# When a process last reached the limit, on the monotonic clock of the machine, and its rate then. All processes of an
# instance share them, because its master imports this module before it forks them. So a process that has just started
# does not accept a burst in the middle of an overload.
LAST_EXCEEDED, ITS_RATE = 0, 1
_shared = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")


class WaitLimit:
    """The state of the queue of one process. Only the main loop uses it.

    - `is_overloaded`: whether there is an overload.
    - `is_exceeded`: whether a further request would wait too long, so that it must be refused.
    """

    def __init__(self) -> None:
        self._last_empty = self._measured = self._updated = monotonic()
        self._exceeded_seconds = counts.OVERLOAD_SECONDS.labels(here.pool)
        self._finished = 0
        # Requests per second while the queue was not empty; None if it was not measured since it was empty.
        self._rate: float | None = None
        self.is_overloaded = self.is_exceeded = False
        self.update(0)

    def count_finished(self) -> None:
        """Count a request that a thread has handled."""
        self._finished += 1

    def update(self, length: int) -> None:
        """Set the state if `length` requests wait for a thread now. Must be called at least every second."""
        now = monotonic()
        if self.is_exceeded:
            self._exceeded_seconds.inc(now - self._updated)
        self._updated = now
        if not length:
            self._last_empty = self._measured = now
            self._finished = 0
            self._rate = None
        elif now >= self._measured + MEASURE_SECONDS:
            rate = self._finished / (now - self._measured)
            self._rate = rate if self._rate is None else (self._rate + rate) / 2
            self._measured, self._finished = now, 0
        is_recent = now < _shared[LAST_EXCEEDED] + MOST_SECONDS
        self.is_overloaded = is_recent or now > self._last_empty + BURST_SECONDS
        limit = MOST_SECONDS * (ACCEPT_AGAIN if self.is_exceeded else 1)
        rate = _shared[ITS_RATE] if self._rate is None else self._rate
        # A queue of `limit * rate` requests is emptied within the limit.
        self.is_exceeded = self.is_overloaded and length > max(SHORT, limit * rate)
        # Not with the rate of another process, which may be that of an interruption: it would never expire.
        if self.is_exceeded and self._rate is not None:
            _shared[LAST_EXCEEDED], _shared[ITS_RATE] = now, self._rate
