"""Rates of counters between two samples."""

import time
from collections.abc import Mapping


class Rates:
    """The rates of counters by name, per second since the last call."""

    def __init__(self) -> None:
        self._before: Mapping[str, float] | None = None
        self._when = 0.0

    def of(self, counters: Mapping[str, float]) -> dict[str, float]:
        """The rate of each counter; empty at the first call.

        A new counter begins at 0. Those of a restarted program begin at 0 again, so that a negative rate counts as 0.
        """
        now, before = time.monotonic(), self._before
        seconds, self._before, self._when = now - self._when, counters, now
        if before is None:
            return {}
        return {name: max(0.0, value - before.get(name, 0.0)) / seconds for name, value in counters.items()}
