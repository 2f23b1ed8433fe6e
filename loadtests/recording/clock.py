"""The clock of a recording."""

import time

# Taken once: a step of the wall clock in the middle of a test would make requests longer or shorter than they were.
_ORIGIN = time.time() - time.perf_counter()


def now() -> float:
    """Seconds since the epoch, by a clock that runs evenly; processes that were forked have the same one."""
    return _ORIGIN + time.perf_counter()
