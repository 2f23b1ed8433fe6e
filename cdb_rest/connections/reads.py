"""Reads: the choice between the primary and its replicas, and queries in one round trip."""

import itertools
import threading
from collections.abc import Callable, Mapping
from typing import Any

from django.db import DEFAULT_DB_ALIAS, Error, connection, connections

from cdb_rest.connections.replicas import monitor
from cdb_rest.connections.replicas.replica import Replica, is_reading_from_one

REPLICAS = [Replica(alias) for alias in connections if alias != DEFAULT_DB_ALIAS]

_turn = itertools.count()
_lock = threading.Lock()
_monitors: list[threading.Thread] = []


def choose_replica() -> Replica | None:
    """The next replica in rotation (round robin), or None if the primary must be used.

    None also inside a `reading` block, where the replica is chosen already.
    """
    if not REPLICAS or is_reading_from_one():
        return None
    # Threads do not survive a fork.
    if not _monitors or not _monitors[0].is_alive():
        _start_monitors()
    ready = [replica for replica in REPLICAS if replica.is_in_rotation]
    return ready[next(_turn) % len(ready)] if ready else None


def fetch_all(
    statement: str, parameters: Mapping[str, Any], note_start: Callable[[], None] | None = None
) -> list[tuple[Any, ...]]:
    """The rows of a query in one round trip: Django's health check of the connection would be a second one.

    If the connection turns out to be lost, the query is sent again on a new one, which is safe because it only reads.
    `note_start` is called each time before the query is sent on an open connection.
    """
    connection.health_check_done = True  # type: ignore[attr-defined]  # the types lack it
    try:
        return _execute(statement, parameters, note_start)
    except Error:
        if connection.in_atomic_block or connection.is_usable():
            raise
        connection.close()
        return _execute(statement, parameters, note_start)


def _start_monitors() -> None:
    with _lock:
        if not _monitors or not _monitors[0].is_alive():
            _monitors[:] = [monitor.start(replica) for replica in REPLICAS]


def _execute(
    statement: str, parameters: Mapping[str, Any], note_start: Callable[[], None] | None
) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        if note_start:
            note_start()
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
