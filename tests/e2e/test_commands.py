"""Commands that are interrupted, and the interval mode of a database, which is fixed at its creation."""

import signal
import subprocess
import sys
import time

import psycopg2
import pytest

from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ROOT
from tests.commands.test_import_iovs import HEADER
from tests.e2e.service import JobClient, Service


@pytest.fixture(scope="module")
def running(new_directory):
    with Service(new_directory() / "data", SCENARIO="none").running() as service:
        yield service


@pytest.fixture
def connect(running):
    opened = []

    def connect():
        opened.append(psycopg2.connect(EmbeddedPostgres(running.data / "postgres").url))
        opened[-1].autocommit = True
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def connection(connect):
    """A connection to the database, whose table of IOVs takes no space: what was rolled back before does."""
    opened = connect()
    opened.cursor().execute('TRUNCATE "PayloadIOV" CASCADE')
    return opened


def begin(service, *arguments):
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=service.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def value(connection, query):
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_interrupted_seeding_leaves_nothing_and_says_so_by_its_code(running, connection):
    seeding = begin(running, "seed_scenario", "heavy-usage")
    wait_until(lambda: value(connection, "SELECT pg_relation_size('\"PayloadIOV\"')") > 4_000_000)
    seeding.send_signal(signal.SIGINT)
    out, err = seeding.communicate(timeout=30)
    assert (seeding.returncode, out, err) == (130, "", "")
    assert value(connection, 'SELECT count(*) FROM "PayloadIOV"') == 0
    assert JobClient(running.port).get("globalTags") == []


READING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY cdb_import%' AND state = 'active'"
STORING = "SELECT pg_relation_size('\"PayloadIOV\"') / 4000000"


@pytest.mark.parametrize(
    ("number", "code", "phase"),
    [(signal.SIGINT, 130, READING), (signal.SIGTERM, 143, STORING)],
    ids=["reading", "storing"],
)
def test_an_interrupted_import_leaves_nothing_and_says_so_by_its_code(
    running, connection, tmp_path, number, code, phase
):
    file = tmp_path / "large.csv"
    rows = "".join(f"Gain,{major:0200},,0,{major},0,{major + 1},0,\n" for major in range(150_000))
    file.write_text(HEADER + rows)
    importing = begin(running, "import_iovs", str(file), "--global-tag", "new", "--create")
    wait_until(lambda: value(connection, phase) > 0)
    importing.send_signal(number)
    out, err = importing.communicate(timeout=30)
    assert (importing.returncode, out, err) == (code, "", "")
    assert value(connection, 'SELECT count(*) FROM "PayloadIOV"') == 0
    assert value(connection, 'SELECT count(*) FROM "PayloadType"') == 0
    assert value(connection, 'SELECT count(*) FROM "GlobalTagChange"') == 0
    assert JobClient(running.port).get("globalTags") == []


CONFLICT = "the database was created with CDB_IOV_MODE=continuous; it cannot be used with CDB_IOV_MODE=discrete"


def state(service):
    client = JobClient(service.port)
    return client.get("globalTag/tiny"), client.get("global-tags/tiny/changes")


@pytest.mark.parametrize(
    "command", [["check_intervals", "--repair"], ["migrate"], ["run"]], ids=lambda command: command[0]
)
def test_every_command_refuses_the_other_mode_in_one_line(service, fresh, command):
    before = state(service)
    refused = fresh(DATABASE_URL=EmbeddedPostgres(service.data / "postgres").url, CDB_IOV_MODE="discrete").manage(
        *command
    )
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", f"cdb: {CONFLICT}\n")
    assert state(service) == before
