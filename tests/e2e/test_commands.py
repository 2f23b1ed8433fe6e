"""Commands that are interrupted, and the interval mode of a database, which is fixed at its creation."""

import signal
import subprocess
import sys

import psycopg2
import pytest

from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ROOT
from tests.commands.test_import_iovs import HEADER
from tests.e2e.service import JobClient, Service
from tests.waiting import wait_until


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


SIZE = "SELECT pg_relation_size('\"PayloadIOV\"') / 4000000"
READING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY cdb_import%' AND state = 'active'"
IMPORT = ("import_iovs", "large.csv", "--global-tag", "new", "--create")


@pytest.mark.parametrize(
    ("command", "number", "code", "phase"),
    [
        (("seed_scenario", "heavy-usage"), signal.SIGINT, 130, SIZE),
        (IMPORT, signal.SIGINT, 130, READING),
        (IMPORT, signal.SIGTERM, 143, SIZE),
    ],
    ids=["seeding", "reading", "storing"],
)
def test_an_interrupted_command_leaves_nothing_and_says_so_by_its_code(
    running, connection, tmp_path, command, number, code, phase
):
    rows = "".join(f"Gain,{major:0200},,0,{major},0,{major + 1},0,\n" for major in range(150_000))
    (tmp_path / "large.csv").write_text(HEADER + rows)
    working = begin(running, *(word.replace("large.csv", f"{tmp_path}/large.csv") for word in command))
    wait_until(lambda: value(connection, phase) > 0, pause=0.02)
    working.send_signal(number)
    out, err = working.communicate(timeout=30)
    assert (working.returncode, out, err) == (code, "", "")
    for table in ("PayloadIOV", "PayloadType", "GlobalTagChange"):
        assert value(connection, f'SELECT count(*) FROM "{table}"') == 0  # noqa: S608 -- a name of the list
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
