"""Connections of the serving process: PostgreSQL's timeouts, our deadlines if the server does not respond, and outages."""

import threading
import time
from contextlib import contextmanager

import psycopg2
import pytest
from django.db import OperationalError, connection
from psycopg2.errors import QueryCanceled

from cdb_rest.connections import circuit_breaker, postgresql
from cdb_rest.connections.postgresql import WatchedConnection
from cdb_rest.connections.snapshot import long_reads, snapshot
from cdb_rest.writes.transactions import write
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module", autouse=True)
def deadline_thread():
    """The thread of a serving process that checks the deadlines."""
    threading.Thread(target=postgresql._check_deadlines, daemon=True).start()


@pytest.fixture(autouse=True)
def no_outage(monkeypatch):
    monkeypatch.setattr(circuit_breaker, "PAUSE_SECONDS", 0.2)
    yield
    time.sleep(0.25)
    with WatchedConnection.circuit_breaker.attempt():
        pass


@contextmanager
def own_options():
    """Connections of this thread are new ones inside the block, without the options of serving processes."""
    connection.close()
    options = connection.settings_dict["OPTIONS"]
    before = {name: options.pop(name) for name in ("connection_factory", "options") if name in options}
    yield
    connection.close()
    for name in ("connection_factory", "options"):
        options.pop(name, None)
    options |= before


@pytest.fixture
def served(settings):
    """The connection of this thread as in the serving process, with the shortest timeouts."""
    settings.CDB_LOOKUP_TIMEOUT_SECONDS = 1
    settings.CDB_STATEMENT_TIMEOUT_SECONDS = 4
    settings.CDB_LOCK_TIMEOUT_SECONDS = 7
    with own_options():
        postgresql.enforce()
        yield


def run(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def timeouts():
    return [
        run(f"SHOW {name}")[0][0]
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    ]


def test_a_session_has_timeouts_and_writes_have_longer_ones(served):
    assert timeouts() == ["1s", "7s", "1min"]
    assert write(timeouts)() == ["4s", "7s", "1min"]
    with snapshot():
        assert timeouts()[0] == "4s"
    with long_reads():
        assert timeouts()[0] == "4s"
    assert timeouts() == ["1s", "7s", "1min"]


def test_a_statement_that_takes_too_long_ends_by_postgresql_and_the_connection_stays(served):
    with pytest.raises(OperationalError) as caught:
        run("SELECT pg_sleep(10)")
    assert isinstance(caught.value.__cause__, QueryCanceled)
    own = connection.connection
    assert run("SELECT 1") == [(1,)]
    assert connection.connection is own

    @write
    def slower():
        return run("SELECT 2 FROM pg_sleep(2.5)")

    assert slower() == [(2,)]
    with long_reads():
        assert run("SELECT 3 FROM pg_sleep(2.5)") == [(3,)]


# What PostgreSQL does not end by itself any more, in each way that the driver waits for it.
WAITS = {
    "execute": lambda cursor: cursor.execute("SELECT pg_sleep(30)"),
    "executemany": lambda cursor: cursor.executemany("SELECT pg_sleep(%s)", [(30,)]),
    "fetch": lambda cursor: cursor.fetchmany(2),
}


@pytest.mark.parametrize("wait", WAITS)
def test_without_postgresqls_own_timeout_the_socket_is_shut(settings, wait):
    settings.CDB_LOOKUP_TIMEOUT_SECONDS = 1
    watched = psycopg2.connect(dsn(), connection_factory=WatchedConnection)
    with watched.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        watched.commit()
    cursor = watched.cursor("rows" if wait == "fetch" else None)
    if wait == "fetch":
        cursor.execute("SELECT n, pg_sleep(CASE WHEN n > 1 THEN 30 ELSE 0 END) FROM generate_series(1, 3) AS n")
    begin = time.monotonic()
    with pytest.raises(psycopg2.OperationalError):
        WAITS[wait](cursor)
    assert 1.5 < time.monotonic() - begin < 10
    assert watched.closed
    # The next one that wants to connect is told at once.
    begin = time.monotonic()
    with pytest.raises(psycopg2.OperationalError, match="did not respond a moment ago"):
        psycopg2.connect(dsn(), connection_factory=WatchedConnection)
    assert time.monotonic() - begin < 0.5
    time.sleep(0.3)
    psycopg2.connect(dsn(), connection_factory=WatchedConnection).close()
    # PostgreSQL notices that the client is gone and releases its locks.
    working = (
        "SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep%'"
        " AND datname = current_database() AND pid <> pg_backend_pid()"
    )
    eventually(lambda: run(working), [])


def dsn():
    parameters = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    return psycopg2.extensions.make_dsn(**{name: parameters[name] for name in names if parameters.get(name)})
