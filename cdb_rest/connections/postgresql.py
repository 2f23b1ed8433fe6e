"""The connections of serving processes to PostgreSQL, with timeouts that also hold when PostgreSQL does not respond, and queries.

PostgreSQL enforces the timeouts of statements as long as it runs. If it is frozen, the driver would wait forever. So each
connection has a deadline, slightly later than PostgreSQL's timeout. A thread checks the deadlines, and shuts down the socket of a
connection that is overdue. The driver then fails as it does when a connection breaks.

Only serving processes have such connections (`cdb/wsgi.py`); commands have no deadlines and no timeouts of statements.
"""

import logging
import os
import socket
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from functools import wraps
from time import monotonic, sleep
from typing import Any

import psycopg2.extensions
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db import connection as current
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg2.extensions import TRANSACTION_STATUS_IDLE, make_dsn

from cdb_rest.connections.circuit_breaker import CircuitBreaker
from cdb_rest.connections.database_check import NOT_A_PRIMARY, objection
from cdb_rest.observe.request_context import RequestContext, current_context

logger = logging.getLogger(__name__)

# The deadline comes this much later than PostgreSQL's timeout, whose error message is more precise.
MARGIN_SECONDS = 1.0
CHECK_INTERVAL_SECONDS = 0.25
# A transaction is idle while Python works, and while a client reads a streamed response: up to 15 s for each piece.
IDLE_SECONDS = 60
# The timeout of an attempt to connect while the circuit is open; 2 s is the smallest connect_timeout of libpq.
ATTEMPT_TIMEOUT_SECONDS = 2
REPLICA_TIMEOUT_SECONDS = 2


def _watched(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of a cursor, so that the connection has a deadline while the method runs.

    If the server turns out not to be the primary any more, the connection is closed.
    """

    @wraps(method)
    def with_deadline(self: Any, *arguments: Any, **values: Any) -> Any:
        connection = self.connection
        connection.context = current_context.get()
        connection.deadline = monotonic() + connection.limit_seconds
        try:
            result = method(self, *arguments, **values)
            connection.check_read_write()
            return result
        except psycopg2.Error as error:
            if error.pgcode in NOT_A_PRIMARY:
                connection.close()
            raise
        finally:
            connection.deadline = None

    return with_deadline


def _named(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of a cursor, so that it puts a comment with request id and actor before the statement.

    It appears in PostgreSQL's log and in pg_stat_activity, which truncate long statements at the end. `RequestContext` ensures
    that its values cannot end the comment or contain a placeholder.
    """

    @wraps(method)
    def with_comment(self: Any, statement: str | bytes, *arguments: Any, **values: Any) -> Any:
        context = current_context.get()
        if context is not None:
            actor = f" actor={context.identity}" if context.identity else ""
            comment = f"/*request_id={context.request_id}{actor}*/ "
            statement = comment.encode() + statement if isinstance(statement, bytes) else comment + statement
        return method(self, statement, *arguments, **values)

    return with_comment


class WatchedCursor(psycopg2.extensions.cursor):
    """A cursor whose statements have a deadline. COPY has none: `exports/copy_out.py` limits each of its pieces."""

    execute = _watched(_named(psycopg2.extensions.cursor.execute))
    executemany = _watched(_named(psycopg2.extensions.cursor.executemany))
    copy_expert = _named(psycopg2.extensions.cursor.copy_expert)


class WatchedServerCursor(WatchedCursor):
    """A server-side cursor, which has a deadline for each fetch as well."""

    fetchone = _watched(psycopg2.extensions.cursor.fetchone)
    fetchmany = _watched(psycopg2.extensions.cursor.fetchmany)
    fetchall = _watched(psycopg2.extensions.cursor.fetchall)
    close = _watched(psycopg2.extensions.cursor.close)


class WatchedConnection(psycopg2.extensions.connection):
    """A connection whose statements have deadlines. When one passes, it is closed and the circuit breaker opens.

    The constructor connects and executes a statement. It raises `psycopg2.Error`: an `OperationalError` at once while the circuit
    breaker is open, unless this is its next attempt, and one if the service must not use the database (`objection`).
    """

    deadline: float | None = None
    circuit_breaker = CircuitBreaker()
    # The timeout of reads; None: CDB_LOOKUP_TIMEOUT_SECONDS.
    read_seconds: int | None = None
    may_be_standby = False
    # Whether the URL demands a server that accepts writes.
    must_be_read_write = False
    # The request that uses the connection.
    context: RequestContext | None = None

    def __init__(self, dsn: str, *arguments: Any, **values: Any) -> None:
        self._limit_reads()
        with self.circuit_breaker.attempt() as was_open:
            dsn = make_dsn(dsn, connect_timeout=ATTEMPT_TIMEOUT_SECONDS) if was_open else dsn
            super().__init__(dsn, *arguments, **values)
            # A duplicate of the descriptor, because the driver may close its own, whose number may then belong to another file.
            self._socket = socket.socket(fileno=os.dup(self.fileno()))
            with _lock:
                _connections.add(self)
            self.must_be_read_write = self.get_dsn_parameters().get("target_session_attrs") == "read-write"
            try:
                self._check_database()
            except psycopg2.Error:
                self.close()
                raise

    # Django passes the name and keyword arguments only.
    def cursor(self, name: str | None = None, **values: Any) -> WatchedCursor:  # type: ignore[override]
        """A cursor; with a name, a server-side cursor."""
        return super().cursor(name, cursor_factory=WatchedServerCursor if name else WatchedCursor, **values)

    def commit(self) -> None:
        """Commit; the next transaction has the deadlines of reads again."""
        self._end(super().commit)

    def rollback(self) -> None:
        """Roll back; the next transaction has the deadlines of reads again."""
        self._end(super().rollback)

    def close(self) -> None:
        """Close the connection and the duplicate of its descriptor."""
        super().close()
        with _lock:
            self._socket.close()

    def abort(self) -> None:
        """Shut down the socket, so that the driver, which waits on it, fails. Another thread may call this."""
        with _lock, suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def check_read_write(self) -> None:
        """Close the connection, and raise `psycopg2.OperationalError`, if the URL demands another server by now.

        An operator may have made the server read-only (`default_transaction_read_only`), to replace it by another one. PostgreSQL
        reports this with the result of the next statement, which may be older than the data of the new server.
        """
        if self.must_be_read_write and self.get_parameter_status("default_transaction_read_only") == "on":
            self.close()
            raise psycopg2.OperationalError("the server has become read-only")

    def _limit_reads(self) -> None:
        self.limit_seconds = (self.read_seconds or settings.CDB_LOOKUP_TIMEOUT_SECONDS) + MARGIN_SECONDS

    def _check_database(self) -> None:
        """Raise `psycopg2.OperationalError` if the service must not use this database."""
        self.autocommit = True
        with self.cursor() as cursor:
            message = objection(cursor, settings.CDB_IOV_MODE, may_be_standby=self.may_be_standby)
        self.autocommit = False
        if message:
            logger.error(message)
            raise psycopg2.OperationalError(message)

    def _end(self, how: Callable[[], None]) -> None:
        self.deadline = monotonic() + self.limit_seconds
        try:
            how()
        finally:
            self.deadline = None
            self._limit_reads()


def enforce() -> None:
    """Make Django use a `WatchedConnection`, with PostgreSQL's timeouts, for each connection that this process opens from now on.

    Starts the thread that checks the deadlines, which does not survive a fork.
    """
    timeouts = {
        "statement_timeout": settings.CDB_LOOKUP_TIMEOUT_SECONDS,
        "lock_timeout": settings.CDB_LOCK_TIMEOUT_SECONDS,
        "idle_in_transaction_session_timeout": IDLE_SECONDS,
        # How often a statement checks whether its client still exists.
        "client_connection_check_interval": 1,
    }
    words = " ".join(f"-c {name}={seconds}s" for name, seconds in timeouts.items())
    for alias in connections:
        options = connections.settings[alias]["OPTIONS"]
        # Each replica has a circuit breaker of its own, and shorter timeouts, because the primary can be used instead.
        of_replica = {
            "circuit_breaker": CircuitBreaker(),
            "read_seconds": REPLICA_TIMEOUT_SECONDS,
            "may_be_standby": True,
        }
        options["connection_factory"] = type(
            "Connection", (WatchedConnection,), {} if alias == DEFAULT_DB_ALIAS else of_replica
        )
        options["options"] = f"{words} {options.get('options', '')}".strip()
    threading.Thread(target=_check_deadlines, name="deadlines", daemon=True).start()


def extend() -> str | None:
    """Set the deadlines of writes and long reads for the rest of the current transaction, whose connection is open.

    Returns the matching timeout of statements in milliseconds, for PostgreSQL. None outside of serving processes, which have
    none.
    """
    if not isinstance(current.connection, WatchedConnection):
        return None
    current.connection.limit_seconds = settings.CDB_STATEMENT_TIMEOUT_SECONDS + MARGIN_SECONDS
    return str(1000 * settings.CDB_STATEMENT_TIMEOUT_SECONDS)


def fetch_all(
    statement: str, parameters: Mapping[str, Any], note_start: Callable[[], None] | None = None
) -> list[tuple[Any, ...]]:
    """The rows of a query on the current connection, in one round trip.

    Django's health check of the connection would be a second round trip. It is left out until the next request.

    If the query fails because the connection is lost, or its server is not the primary any more, it is sent once more on a new
    connection, except inside a transaction. So the statement must only read. `note_start` is called before each attempt, when
    the connection is open. Raises `django.db.Error`.
    """
    # Once, because `django.db.connection` would look it up for each attribute.
    connection = connections[DEFAULT_DB_ALIAS]
    connection.health_check_done = True  # type: ignore[attr-defined]  # the types lack it
    try:
        return _execute(connection, statement, parameters, note_start)
    except Error:
        if connection.in_atomic_block or connection.is_usable():
            raise
        connection.close()
        return _execute(connection, statement, parameters, note_start)


def _execute(
    connection: BaseDatabaseWrapper, statement: str, parameters: Mapping[str, Any], note: Callable[[], None] | None
) -> list[tuple[Any, ...]]:
    connection.ensure_connection()
    # Django's cursor takes a tenth of the Python time of a lookup. It is needed only if something observes its statements.
    is_observed = connection.execute_wrappers or connection.queries_logged
    open_cursor = connection.cursor if is_observed else connection.connection.cursor
    context = current_context.get()
    with (
        connection.wrap_database_errors,
        open_cursor() as cursor,
        nullcontext() if is_observed or context is None else context.query(),
    ):
        if note:
            note()
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


_lock = threading.Lock()
_connections: weakref.WeakSet[WatchedConnection] = weakref.WeakSet()


def _check_deadlines() -> None:
    while True:
        sleep(CHECK_INTERVAL_SECONDS)
        now = monotonic()
        with _lock:
            watched = list(_connections)
        for connection in watched:
            deadline = connection.deadline
            if deadline is not None and deadline < now:
                current_context.set(connection.context)
                logger.warning("the database did not respond in time; the connection is closed")
                connection.circuit_breaker.open()
                connection.abort()
                # The idle ones to the same server, so that a request on each of them need not wait for its own deadline.
                for other in watched:
                    is_same = other.circuit_breaker is connection.circuit_breaker
                    if is_same and other.info.transaction_status == TRANSACTION_STATUS_IDLE and other.deadline is None:
                        other.abort()
