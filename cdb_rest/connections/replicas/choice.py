"""Which server the next read goes to."""

import itertools
import threading

from django.db import DEFAULT_DB_ALIAS, connections

from cdb_rest.connections.replicas import watch
from cdb_rest.connections.replicas.replica import Replica, is_reading_from_one

REPLICAS = [Replica(alias) for alias in connections if alias != DEFAULT_DB_ALIAS]

_turn = itertools.count()
_lock = threading.Lock()
_watches: list[threading.Thread] = []


def choose() -> Replica | None:
    """A replica that takes part in reading, each in its turn; None where the primary has to answer.

    Also inside of a `reading` block, where the choice has been made.
    """
    if not REPLICAS or is_reading_from_one():
        return None
    # A process that was forked has none of the threads of the one before.
    if not _watches or not _watches[0].is_alive():
        _start_watches()
    ready = [replica for replica in REPLICAS if replica.is_in_rotation]
    return ready[next(_turn) % len(ready)] if ready else None


def _start_watches() -> None:
    with _lock:
        if not _watches or not _watches[0].is_alive():
            _watches[:] = [watch.start(replica) for replica in REPLICAS]
