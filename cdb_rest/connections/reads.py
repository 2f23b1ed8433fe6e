"""Reading from the database: the choice between the primary and its replicas, and queries in one round trip."""

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
    """The next replica in rotation (round robin), or None if the caller must use the current connection.

    None means that no replica is in rotation, so that the queries go to the primary, or that this thread is inside a
    block of `Replica.reading`, so that they go to a replica already. Starts the threads that monitor the replicas if
    this process has none yet.
    """
    if not REPLICAS or is_reading_from_one():
        return None
    # Threads do not survive a fork, so each process starts the monitors at its first read.
    if not _monitors or not _monitors[0].is_alive():
        _start_monitors()
    ready = [replica for replica in REPLICAS if replica.is_in_rotation]
    return ready[next(_turn) % len(ready)] if ready else None


def fetch_all(
    statement: str, parameters: Mapping[str, Any], note_start: Callable[[], None] | None = None
) -> list[tuple[Any, ...]]:
    """The rows of a query on the current connection, in one round trip.

    Django's health check of the connection would be a second round trip. It is left out until the next request.

    If the query fails because the connection is lost, it is sent once more on a new connection, except inside a
    transaction. So the statement must only read. `note_start` is called before each attempt, when the connection is
    open. Raises `django.db.Error`.
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
    connection.ensure_connection()
    # Django's cursor takes a tenth of the Python time of a lookup. It is needed only if something observes its statements.
    is_observed = connection.execute_wrappers or connection.queries_logged
    open_cursor = connection.cursor if is_observed else connection.connection.cursor
    with connection.wrap_database_errors, open_cursor() as cursor:
        if note_start:
            note_start()
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
