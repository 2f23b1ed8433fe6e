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
# An overload goes on while the queue has more than this share of its largest length.
NEARLY_FULL = 0.75
# The number of connections is limited so that the queue has this share. The largest length follows a measured rate, so it
# changes all the time, and a queue of just this length would often be too long.
FULL = 0.9
# A queue of this length is always accepted: when the threads go on after an interruption, they empty it at once.
ALWAYS_ACCEPTED = 16
# The interval at which the rate of finished requests is measured.
MEASURE_SECONDS = 1.0

# When the queue of a process was last nearly full, on the monotonic clock of the machine, and its rate then. All processes of an
# instance share them, because its master imports this module before it forks them. So a process that has just started
# does not accept a burst in the middle of an overload.
LAST_FULL, RATE = 0, 1
_shared = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")


class WaitLimit:
    """The state of the queue of one process. Only the main loop uses it.

    - `full_length`: the length of the queue at which no more connections should be accepted; infinite without an overload.
    - `is_nearly_full`: whether the queue has nearly this length.
    - `is_exceeded`: whether a further request would wait too long, so that it must be refused.
    - `is_over`: whether no process has had a nearly full queue for as long as a request may wait.
    """

    def __init__(self) -> None:
        self._last_empty = self._measured = self._updated = monotonic()
        self._overload_seconds = counts.OVERLOAD_SECONDS.labels(here.pool)
        self._finished = 0
        # Requests per second while the queue was not empty. None: never measured. Infinite: not since it was empty.
        self._rate: float | None = None
        self.full_length = math.inf
        self.is_nearly_full, self.is_exceeded, self.is_over = False, False, True

    def count_finished(self) -> None:
        """Count a request that a thread has handled."""
        self._finished += 1

    def update(self, length: int) -> None:
        """Set the state if `length` requests wait for a thread now. Must be called at least every second."""
        now = monotonic()
        if self.is_nearly_full:
            self._overload_seconds.inc(now - self._updated)
        self._updated = now
        self._measure(length, now)
        self.is_over = now >= _shared[LAST_FULL] + MAX_WAIT_SECONDS
        is_overloaded = not self.is_over or now > self._last_empty + BURST_SECONDS
        rate = _shared[RATE] if self._rate is None else self._rate
        # A queue of this length is emptied within the limit.
        largest = max(ALWAYS_ACCEPTED, MAX_WAIT_SECONDS * rate) if is_overloaded else math.inf
        self.full_length = FULL * largest
        self.is_nearly_full, self.is_exceeded = length > NEARLY_FULL * largest, length > largest
        # A process without a rate of its own does not renew the shared values: it could do so forever.
        if self.is_nearly_full and self._rate is not None:
            _shared[LAST_FULL], _shared[RATE] = now, self._rate
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
