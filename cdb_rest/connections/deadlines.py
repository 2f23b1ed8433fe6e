"""Connections to PostgreSQL that end in time, also when it does not answer.

PostgreSQL keeps the timeouts of statements, as long as it is there to keep them. If it is frozen, or the network swallows
what is sent, the driver would wait for ever: so a thread of the serving process looks at each connection's deadline, a moment
after PostgreSQL's own, and shuts the socket of one that is overdue. The driver then fails as with any connection that breaks.

Only the serving process has such connections (`cdb/wsgi.py`); elsewhere statements take the time that they need.
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
from cdb_rest.observe.exchange import Exchange
from cdb_rest.observe.exchange import current as exchange

logger = logging.getLogger(__name__)

LIMIT_SESSION = named_sql.load("limit_session")

# How much later than PostgreSQL's timeout the deadline is: its own error is the better one.
MARGIN_SECONDS = 1.0
LOOK_SECONDS = 0.25
# A transaction waits for the service's Python, and for a client that takes a streamed answer, which has 15 s for each piece.
IDLE_SECONDS = 60
# After so long PostgreSQL ends the statement of a client that is gone, such as a process that was killed.
GONE_SECONDS = 1
# The least that the driver knows.
TRIAL_SECONDS = 2

CIRCUIT_BREAKER = CircuitBreaker()


class _Hurry(threading.local):
    seconds: int | None = None


_hurry = _Hurry()


def _watched(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a cursor, which has to end before the connection's deadline."""

    def until_deadline(self: Any, *arguments: Any, **values: Any) -> Any:
        connection = self.connection
        connection.exchange = exchange.get()
        connection.deadline = monotonic() + (_hurry.seconds or connection.limit_seconds)
        try:
            return method(self, *arguments, **values)
        finally:
            connection.deadline = None

    return until_deadline


class WatchedCursor(psycopg2.extensions.cursor):
    """A cursor whose statements have a deadline. Streams of COPY have none: whoever streams sees to their progress."""

    execute = _watched(named(psycopg2.extensions.cursor.execute))
    executemany = _watched(named(psycopg2.extensions.cursor.executemany))
    copy_expert = named(psycopg2.extensions.cursor.copy_expert)


class WatchedServerCursor(WatchedCursor):
    """The same for a cursor on the server, where fetching asks the server too."""

    fetchone = _watched(psycopg2.extensions.cursor.fetchone)
    fetchmany = _watched(psycopg2.extensions.cursor.fetchmany)
    fetchall = _watched(psycopg2.extensions.cursor.fetchall)
    close = _watched(psycopg2.extensions.cursor.close)


class WatchedConnection(psycopg2.extensions.connection):
    """A connection for requests: its statements have timeouts, and deadlines for when nothing answers at all.

    It counts as open when a first statement was answered, because a pool in between would accept it without a database.
    Raises `psycopg2.OperationalError` if that fails, at once where the database is known to be away.
    """

    deadline: float | None = None
    circuit_breaker = CIRCUIT_BREAKER
    # Once for the process.
    is_mode_checked = False
    # The one that it works for.
    exchange: Exchange | None = None

    def __init__(self, dsn: str, *arguments: Any, **values: Any) -> None:
        self._limit_reads()
        with self.circuit_breaker.trying() as was_away:
            seconds = _hurry.seconds or (TRIAL_SECONDS if was_away else None)
            super().__init__(make_dsn(dsn, connect_timeout=seconds) if seconds else dsn, *arguments, **values)
            # A descriptor of our own, because the driver's number may belong to something else when it is used.
            self._socket = socket.socket(fileno=os.dup(self.fileno()))
            _watch(self)
            try:
                self._begin_session()
            except psycopg2.Error:
                self.close()
                raise

    # Django asks for a cursor by its name and by named options alone.
    def cursor(self, name: str | None = None, **values: Any) -> WatchedCursor:  # type: ignore[override]
        """A cursor, on the server if it has a name."""
        return super().cursor(name, cursor_factory=WatchedServerCursor if name else WatchedCursor, **values)

    def commit(self) -> None:
        """Commit; the next transaction has the timeouts of reads again."""
        self._end(super().commit)

    def rollback(self) -> None:
        """Roll back; the next transaction has the timeouts of reads again."""
        self._end(super().rollback)

    def close(self) -> None:
        """Close it, and our descriptor of it."""
        super().close()
        with _lock:
            self._socket.close()

    def extend(self) -> None:
        """Give the rest of the transaction the deadlines of writes and heavy reads."""
        self.limit_seconds = settings.CDB_STATEMENT_TIMEOUT_SECONDS + MARGIN_SECONDS

    def give_up(self) -> None:
        """Shut the socket under the driver, which waits for an answer that does not come."""
        with _lock, suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _limit_reads(self) -> None:
        self.limit_seconds = settings.CDB_LOOKUP_TIMEOUT_SECONDS + MARGIN_SECONDS

    def _begin_session(self) -> None:
        # Outside of a transaction, whose end would take the settings back.
        self.autocommit = True
        with self.cursor() as cursor:
            cursor.execute(
                LIMIT_SESSION,
                {
                    "statement": str(1000 * settings.CDB_LOOKUP_TIMEOUT_SECONDS),
                    "lock": str(1000 * settings.CDB_LOCK_TIMEOUT_SECONDS),
                    "idle": str(1000 * IDLE_SECONDS),
                    "look": str(1000 * GONE_SECONDS),
                },
            )
            self._check_mode(cursor)
        self.autocommit = False

    @staticmethod
    def _check_mode(cursor: WatchedCursor) -> None:
        """Raise `psycopg2.OperationalError` if the database was made with another CDB_IOV_MODE.

        The start of the process looks as well, but the database may have been away then.
        """
        if WatchedConnection.is_mode_checked:
            return
        made_in = iov_mode.recorded(cursor)
        conflict = iov_mode.conflict(made_in, settings.CDB_IOV_MODE)
        if conflict:
            logger.error(conflict)
            raise psycopg2.OperationalError(conflict)
        WatchedConnection.is_mode_checked = made_in is not None

    def _end(self, how: Callable[[], None]) -> None:
        self.deadline = monotonic() + self.limit_seconds
        try:
            how()
        finally:
            self.deadline = None
            self._limit_reads()


def serve() -> None:
    """Let this process's connections, none of which is open yet, be watched ones."""
    for alias in connections:
        # Each server can be away by itself.
        of_its_own = {} if alias == DEFAULT_DB_ALIAS else {"circuit_breaker": CircuitBreaker()}
        factory = type("WatchedConnection", (WatchedConnection,), of_its_own)
        connections.settings[alias]["OPTIONS"]["connection_factory"] = factory


@contextmanager
def hurry(seconds: int) -> Iterator[None]:
    """Inside the block the database has so long to take a connection or to answer a statement (2 at least)."""
    _hurry.seconds = seconds
    try:
        yield
    finally:
        _hurry.seconds = None


def heavy_milliseconds() -> str | None:
    """The timeout of statements in writes and heavy reads, as PostgreSQL takes it; None where no requests are served."""
    served = isinstance(current.connection, WatchedConnection)
    return str(1000 * settings.CDB_STATEMENT_TIMEOUT_SECONDS) if served else None


def extend() -> None:
    """Give the rest of the current transaction, whose PostgreSQL was told that timeout, deadlines to match."""
    if isinstance(current.connection, WatchedConnection):
        current.connection.extend()


_lock = threading.Lock()
_connections: weakref.WeakSet[WatchedConnection] = weakref.WeakSet()
_watcher: threading.Thread | None = None


def _watch(connection: WatchedConnection) -> None:
    global _watcher
    with _lock:
        _connections.add(connection)
        # A process that was forked has none of the threads of the one before.
        if _watcher is None or not _watcher.is_alive():
            _watcher = threading.Thread(target=_look_after_deadlines, name="deadlines", daemon=True)
            _watcher.start()


def _look_after_deadlines() -> None:
    while True:
        sleep(LOOK_SECONDS)
        now = monotonic()
        with _lock:
            watched = list(_connections)
        for connection in watched:
            deadline = connection.deadline
            if deadline is not None and deadline < now:
                counts.GIVEN_UP.inc()
                exchange.set(connection.exchange)
                logger.warning("the database has not answered in time; its connection is given up")
                connection.circuit_breaker.began()
                connection.give_up()
