"""A dictionary in memory whose entries expire."""

import threading
from time import monotonic
from typing import Generic, TypeVar

Value = TypeVar("Value")

MAX_ENTRIES = 10_000


class Cache(Generic[Value]):
    """Values that are remembered for `seconds`, by keys. Threads may share it.

    When it has `MAX_ENTRIES` entries, the next `put` empties it: tokens are few, and many different ones are an attack.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._entries: dict[str, tuple[float, Value]] = {}

    def get(self, key: str) -> Value | None:
        """The value, or None if there is none or it has expired."""
        with self._lock:
            expires, value = self._entries.get(key, (0.0, None))
        return value if expires > monotonic() else None

    def put(self, key: str, value: Value, seconds: float | None = None) -> Value:
        """Remember a value. Returns it.

        It expires after `seconds`, but never later than the time of the cache, which is also the default.
        """
        lifetime = self.seconds if seconds is None else min(seconds, self.seconds)
        with self._lock:
            if len(self._entries) >= MAX_ENTRIES:
                self._entries.clear()
            self._entries[key] = monotonic() + lifetime, value
        return value

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._entries.clear()
