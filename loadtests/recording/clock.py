"""The clock of a recording."""

import time

# Read once: a step of the wall clock during a test would distort the times of requests.
_ORIGIN = time.time() - time.perf_counter()


def now() -> float:
    """Seconds since the epoch, by a monotonic clock; forked processes share it."""
    return _ORIGIN + time.perf_counter()
