"""Reads: which server the next one goes to, and a query in one round trip."""

import itertools
import threading
from collections.abc import Callable, Mapping
from typing import Any

from django.db import DEFAULT_DB_ALIAS, Error, connection, connections

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


def ask(
    statement: str, parameters: Mapping[str, Any], note_start: Callable[[], None] | None = None
) -> list[tuple[Any, ...]]:
    """The rows of a query in one round trip, without the health check that would be a second one.

    `note_start` is called each time that there is a connection and the query is sent.

    Asking twice is harmless, so a connection that turns out to be lost is replaced and the question asked again.
    """
    connection.health_check_done = True  # type: ignore[attr-defined]  # the types lack it
    try:
        return _execute(statement, parameters, note_start)
    except Error:
        if connection.in_atomic_block or connection.is_usable():
            raise
        connection.close()
        return _execute(statement, parameters, note_start)


def _start_watches() -> None:
    with _lock:
        if not _watches or not _watches[0].is_alive():
            _watches[:] = [watch.start(replica) for replica in REPLICAS]


def _execute(
    statement: str, parameters: Mapping[str, Any], note_start: Callable[[], None] | None
) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        if note_start:
            note_start()
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
