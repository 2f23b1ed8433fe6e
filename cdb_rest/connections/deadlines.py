"""Timeouts on connections to PostgreSQL, which also hold when PostgreSQL does not respond.

PostgreSQL enforces the statement timeout as long as it runs. If it is frozen, or the network drops packets, the driver
would wait forever. So each connection has a deadline, slightly later than PostgreSQL's timeout. A thread of each serving
process checks the deadlines, and shuts down the socket of a connection that is overdue. The driver then fails as it does
when a connection breaks.

Only serving processes have such connections (`cdb/wsgi.py`); commands have no deadlines and no timeouts
of statements.
"""

import logging
import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Any

import psycopg2.extensions
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db import connection as current
from psycopg2.extensions import make_dsn

from cdb_rest import named_sql
from cdb_rest.connections import iov_mode
from cdb_rest.connections.circuit_breaker import CircuitBreaker
from cdb_rest.connections.statement_comments import named
from cdb_rest.metrics import counts
from cdb_rest.observe.request_context import RequestContext, current_context

logger = logging.getLogger(__name__)

LIMIT_SESSION = named_sql.load("limit_session")

# The deadline comes this much later than PostgreSQL's timeout, whose error message is more precise.
MARGIN_SECONDS = 1.0
CHECK_INTERVAL_SECONDS = 0.25
# A transaction is idle while Python works, and while a client reads a streamed response: up to 15 s for each piece.
IDLE_SECONDS = 60
# PostgreSQL checks this often during a statement whether its client still exists, and cancels the statement if not.
CLIENT_CHECK_SECONDS = 1
# The timeout of an attempt to connect while the circuit is open; 2 s is the smallest connect_timeout of libpq.
ATTEMPT_TIMEOUT_SECONDS = 2

CIRCUIT_BREAKER = CircuitBreaker()


class _ThreadTimeout(threading.local):
    seconds: int | None = None


_thread_timeout = _ThreadTimeout()


def _watched(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of a cursor, so that the connection has a deadline while the method runs."""

    def with_deadline(self: Any, *arguments: Any, **values: Any) -> Any:
        connection = self.connection
        connection.context = current_context.get()
        connection.deadline = monotonic() + (_thread_timeout.seconds or connection.limit_seconds)
        try:
            return method(self, *arguments, **values)
        finally:
            connection.deadline = None

    return with_deadline


class WatchedCursor(psycopg2.extensions.cursor):
    """A cursor whose statements have a deadline. COPY has none: `services/copy_out.py` limits each of its pieces."""

    execute = _watched(named(psycopg2.extensions.cursor.execute))
    executemany = _watched(named(psycopg2.extensions.cursor.executemany))
    copy_expert = named(psycopg2.extensions.cursor.copy_expert)


class WatchedServerCursor(WatchedCursor):
    """A server-side cursor, which has a deadline for each fetch as well."""

    fetchone = _watched(psycopg2.extensions.cursor.fetchone)
    fetchmany = _watched(psycopg2.extensions.cursor.fetchmany)
    fetchall = _watched(psycopg2.extensions.cursor.fetchall)
    close = _watched(psycopg2.extensions.cursor.close)


class WatchedConnection(psycopg2.extensions.connection):
    """A connection for requests, whose statements have timeouts and deadlines.

    The constructor connects and executes a first statement, because PgBouncer accepts connections while the database is
    down. It raises `psycopg2.Error`: an `OperationalError` at once while the circuit breaker is open, unless this is its
    next attempt, and one if the database has another IOV mode.

    When a deadline passes, the connection is closed and the circuit breaker is opened.
    """

    deadline: float | None = None
    circuit_breaker = CIRCUIT_BREAKER
    # One check for the whole process.
    is_mode_checked = False
    # The request that uses the connection.
    context: RequestContext | None = None

    def __init__(self, dsn: str, *arguments: Any, **values: Any) -> None:
        self._limit_reads()
        with self.circuit_breaker.attempt() as was_open:
            seconds = _thread_timeout.seconds or (ATTEMPT_TIMEOUT_SECONDS if was_open else None)
            super().__init__(make_dsn(dsn, connect_timeout=seconds) if seconds else dsn, *arguments, **values)
            # A duplicate of the descriptor, because the driver may close its own, whose number may then belong to another file.
            self._socket = socket.socket(fileno=os.dup(self.fileno()))
            _watch(self)
            try:
                self._begin_session()
            except psycopg2.Error:
                self.close()
                raise

    # Django passes the name and keyword arguments only.
    def cursor(self, name: str | None = None, **values: Any) -> WatchedCursor:  # type: ignore[override]
        """A cursor; with a name, a server-side cursor."""
        return super().cursor(name, cursor_factory=WatchedServerCursor if name else WatchedCursor, **values)

    def commit(self) -> None:
        """Commit; the next transaction has the timeouts of reads again."""
        self._end(super().commit)

    def rollback(self) -> None:
        """Roll back; the next transaction has the timeouts of reads again."""
        self._end(super().rollback)

    def close(self) -> None:
        """Close the connection and the duplicate of its descriptor."""
        super().close()
        with _lock:
            self._socket.close()

    def extend(self) -> None:
        """Set the deadlines of writes and long reads for the rest of the transaction.

        It does not change PostgreSQL's timeout.
        """
        self.limit_seconds = settings.CDB_STATEMENT_TIMEOUT_SECONDS + MARGIN_SECONDS

    def abort(self) -> None:
        """Shut down the socket, so that the driver, which waits on it, fails. Another thread may call this."""
        with _lock, suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _limit_reads(self) -> None:
        self.limit_seconds = settings.CDB_LOOKUP_TIMEOUT_SECONDS + MARGIN_SECONDS

    def _begin_session(self) -> None:
        # Outside of a transaction: a rollback would revert the settings.
        self.autocommit = True
        with self.cursor() as cursor:
            cursor.execute(
                LIMIT_SESSION,
                {
                    "statement": str(1000 * settings.CDB_LOOKUP_TIMEOUT_SECONDS),
                    "lock": str(1000 * settings.CDB_LOCK_TIMEOUT_SECONDS),
                    "idle": str(1000 * IDLE_SECONDS),
                    "look": str(1000 * CLIENT_CHECK_SECONDS),
                },
            )
            self._check_mode(cursor)
        self.autocommit = False

    @staticmethod
    def _check_mode(cursor: WatchedCursor) -> None:
        """Raise `psycopg2.OperationalError` if the database was created with another CDB_IOV_MODE.

        The mode is also checked when the service starts, but the database may have been down then. A database without a
        recorded mode is accepted, and checked again with the next connection.
        """
        if WatchedConnection.is_mode_checked:
            return
        created_in = iov_mode.recorded(cursor)
        conflict = iov_mode.conflict(created_in, settings.CDB_IOV_MODE)
        if conflict:
            logger.error(conflict)
            raise psycopg2.OperationalError(conflict)
        WatchedConnection.is_mode_checked = created_in is not None

    def _end(self, how: Callable[[], None]) -> None:
        self.deadline = monotonic() + self.limit_seconds
        try:
            how()
        finally:
            self.deadline = None
            self._limit_reads()


def enforce() -> None:
    """Make Django use a `WatchedConnection` for each connection that this process opens from now on.

    Connections that are already open would stay without deadlines, so call it before the first one.
    """
    for alias in connections:
        # Each server has a circuit breaker of its own.
        of_its_own = {} if alias == DEFAULT_DB_ALIAS else {"circuit_breaker": CircuitBreaker()}
        factory = type("WatchedConnection", (WatchedConnection,), of_its_own)
        connections.settings[alias]["OPTIONS"]["connection_factory"] = factory


@contextmanager
def database_timeout(seconds: int) -> Iterator[None]:
    """Limit connecting, and each statement of this thread inside the block, to so many seconds (at least 2).

    It replaces the deadline of statements, not PostgreSQL's timeout. So a statement that takes longer closes its
    connection and opens the circuit breaker. COPY is not limited; COMMIT and ROLLBACK have the usual deadline. The limit
    has an effect only in serving processes. Blocks must not be nested, because the end of the inner one ends the limit of
    the outer one.
    """
    _thread_timeout.seconds = seconds
    try:
        yield
    finally:
        _thread_timeout.seconds = None


def statement_timeout() -> str | None:
    """The statement timeout of writes and long reads in milliseconds, for PostgreSQL.

    None outside of serving processes, and if the current connection has not been opened yet.
    """
    served = isinstance(current.connection, WatchedConnection)
    return str(1000 * settings.CDB_STATEMENT_TIMEOUT_SECONDS) if served else None


def extend() -> None:
    """Set deadlines that match `statement_timeout()` for the rest of the current transaction.

    The caller must set PostgreSQL's timeout itself. Outside of serving processes it does nothing.
    """
    if isinstance(current.connection, WatchedConnection):
        current.connection.extend()


_lock = threading.Lock()
_connections: weakref.WeakSet[WatchedConnection] = weakref.WeakSet()
_watcher: threading.Thread | None = None


def _watch(connection: WatchedConnection) -> None:
    global _watcher
    with _lock:
        _connections.add(connection)
        # Threads do not survive a fork.
        if _watcher is None or not _watcher.is_alive():
            _watcher = threading.Thread(target=_check_deadlines, name="deadlines", daemon=True)
            _watcher.start()


def _check_deadlines() -> None:
    while True:
        sleep(CHECK_INTERVAL_SECONDS)
        now = monotonic()
        with _lock:
            watched = list(_connections)
        for connection in watched:
            deadline = connection.deadline
            if deadline is not None and deadline < now:
                counts.DATABASE_TIMEOUTS.inc()
                current_context.set(connection.context)
                logger.warning("the database did not respond in time; the connection is closed")
                connection.circuit_breaker.open()
                connection.abort()
