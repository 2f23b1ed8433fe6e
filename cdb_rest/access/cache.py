"""What this process has verified, for a while, in Django's cache in memory. Threads may share it."""

from django.core.cache.backends.locmem import LocMemCache

# When there are more, the third that was used least recently goes: tokens are few, and many different ones are an attack.
MAX_ENTRIES = 10_000


def cache(name: str, seconds: float) -> LocMemCache:
    """A cache whose values expire after `seconds`, unless `set` is given another time. Each cache needs a name of its own."""
    return LocMemCache(name, {"TIMEOUT": seconds, "OPTIONS": {"MAX_ENTRIES": MAX_ENTRIES}})
