"""The limit on the time for which lookups wait for a thread during an overload.

After a burst, for example when thousands of jobs start at once, all requests may wait until they are handled. An
overload is a queue that has not been empty for `CDB_BURST_SECONDS`. Then a request is accepted only if it will
probably wait less than `CDB_OVERLOAD_WAIT_SECONDS`. This is "controlled delay" as in B. Maurer, "Fail at Scale", ACM
Queue 13 (8), 2015, but applied when a request arrives, so that no request waits in vain.
"""

import math
import mmap
from time import monotonic

from cdb import env
from cdb_rest.metrics import counts
from cdb_rest.metrics.slots import here

VALUES = env.read()
BURST_SECONDS: float = VALUES["CDB_BURST_SECONDS"]
MAX_WAIT_SECONDS: float = VALUES["CDB_OVERLOAD_WAIT_SECONDS"]
# Requests are accepted again when the wait has fallen to this share of the limit, so that the state changes rarely.
ACCEPT_AGAIN = 0.75
# A queue of this length is always accepted: when the threads go on after an interruption, they empty it at once.
ALWAYS_ACCEPTED = 16
# The interval at which the rate of finished requests is measured.
MEASURE_SECONDS = 1.0

# When a process last reached the limit, on the monotonic clock of the machine, and its rate then. All processes of an
# instance share them, because its master imports this module before it forks them. So a process that has just started
# does not accept a burst in the middle of an overload.
LAST_EXCEEDED, RATE = 0, 1
_shared = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")


class WaitLimit:
    """The state of the queue of one process. Only the main loop uses it.

    - `is_exceeded`: whether a further request would wait too long, so that it must be refused.
    - `is_over`: whether no process has reached the limit for as long as a request may wait.
    """

    def __init__(self) -> None:
        self._last_empty = self._measured = self._updated = monotonic()
        self._exceeded_seconds = counts.OVERLOAD_SECONDS.labels(here.pool)
        self._finished = 0
        # Requests per second while the queue was not empty. None: never measured. Infinite: not since it was empty.
        self._rate: float | None = None
        self.is_exceeded, self.is_over = False, True

    def count_finished(self) -> None:
        """Count a request that a thread has handled."""
        self._finished += 1

    def update(self, length: int) -> None:
        """Set the state if `length` requests wait for a thread now. Must be called at least every second."""
        now = monotonic()
        if self.is_exceeded:
            self._exceeded_seconds.inc(now - self._updated)
        self._updated = now
        self._measure(length, now)
        self.is_over = now >= _shared[LAST_EXCEEDED] + MAX_WAIT_SECONDS
        is_overloaded = not self.is_over or now > self._last_empty + BURST_SECONDS
        limit = MAX_WAIT_SECONDS * (ACCEPT_AGAIN if self.is_exceeded else 1)
        rate = _shared[RATE] if self._rate is None else self._rate
        # A queue of `limit * rate` requests is emptied within the limit.
        self.is_exceeded = is_overloaded and length > max(ALWAYS_ACCEPTED, limit * rate)
        # A process without a rate of its own does not renew the shared values: it could do so forever.
        if self.is_exceeded and self._rate is not None:
            _shared[LAST_EXCEEDED], _shared[RATE] = now, self._rate
            self.is_over = False

    def _measure(self, length: int, now: float) -> None:
        if not length:
            self._last_empty = self._measured = now
            self._finished = 0
            self._rate = None if self._rate is None else math.inf
        elif now >= self._measured + MEASURE_SECONDS:
            rate = self._finished / (now - self._measured)
            self._rate = rate if self._rate is None or self._rate == math.inf else (self._rate + rate) / 2
            self._measured, self._finished = now, 0
