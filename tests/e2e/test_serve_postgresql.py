"""deploy/postgresql.conf and the statement timeouts of the pools, on the server that `make serve` starts."""

import psycopg2
import pytest

from cdb.embedded.server import EmbeddedPostgres
from cdb.processes import directories
from cdb.processes.machine import disk_megabytes
from cdb.serving import postgresql
from cdb.serving.pools import pools


@pytest.fixture
def cursor(served):
    connection = psycopg2.connect(EmbeddedPostgres(served.data / "postgres").url)
    yield connection.cursor()
    connection.close()


@pytest.mark.parametrize("name", postgresql.options())
def test_each_line_is_a_setting_that_took_effect(cursor, served, monkeypatch, name):
    # Some depend on the size of the service's disk.
    monkeypatch.setattr(postgresql, "disk_here", lambda: disk_megabytes(served.data))
    wanted = postgresql.options()[name]
    cursor.execute("SELECT source FROM pg_settings WHERE name = %s", [name])
    assert cursor.fetchone() == ("command line",)
    cursor.execute(f"SHOW {name}")
    shown = cursor.fetchone()[0]
    # Sizes are shown in the largest unit that fits.
    assert shown == wanted or _bytes(shown) == _bytes(wanted)


def _bytes(size):
    return int(size[:-2]) * {"kB": 1, "MB": 1024, "GB": 1024**2}[size[-2:]]


def test_sessions_of_each_pool_begin_with_the_timeouts_of_cheap_reads(served):
    sockets = directories.for_sockets(served.data.resolve() / "serve" / "sockets", "[^A-Za-z0-9/._-]")
    for name in ("lookups", "others"):
        connection = psycopg2.connect(dbname=pools()[name].database, host=str(sockets / "pool"), port=6432, user="cdb")
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout'), current_setting('lock_timeout')")
            assert cursor.fetchone() == ("5s", "10s")
        connection.close()
