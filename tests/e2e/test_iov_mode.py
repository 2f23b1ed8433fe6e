"""The interval mode of a database is fixed at its creation: nothing uses it in the other mode."""

import subprocess
import sys
import time

import pytest

from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ROOT
from tests.e2e.faults import LOOKUP
from tests.e2e.service import JobClient, raw

CONFLICT = "the database was created with CDB_IOV_MODE=continuous; it cannot be used with CDB_IOV_MODE=discrete"
READY = b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def database(new_directory):
    """A server with a database that was made in the default mode."""
    server = EmbeddedPostgres(new_directory() / "postgres")
    server.acquire()
    yield server
    server.release()


def state(service):
    client = JobClient(service.port)
    return client.get("globalTag/tiny"), client.get("global-tags/tiny/changes")


@pytest.mark.parametrize(
    "command",
    [
        ["check_intervals", "--repair"],
        ["seed_scenario", "tiny", "--reset", "--yes"],
        ["migrate"],
        ["run"],
        ["shell", "-c", "0"],
    ],
    ids=lambda command: command[0],
)
def test_every_command_refuses_the_other_mode_in_one_line(service, fresh, command):
    before = state(service)
    refused = fresh(DATABASE_URL=EmbeddedPostgres(service.data / "postgres").url, CDB_IOV_MODE="discrete").manage(
        *command
    )
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", f"cdb: {CONFLICT}\n")
    assert state(service) == before


def gunicorn(service):
    """gunicorn alone, as in a container."""
    bind = f"127.0.0.1:{service.port}"
    command = [sys.executable, "-m", "gunicorn", "--config", "deploy/gunicorn.conf.py", "--bind", bind]
    return subprocess.Popen(command, cwd=ROOT, env=service.environment, stderr=subprocess.PIPE, text=True)


def test_a_process_that_started_without_the_database_does_not_answer_in_the_other_mode(fresh, new_directory):
    server = EmbeddedPostgres(new_directory() / "postgres")
    server.acquire()
    assert fresh(DATABASE_URL=server.url).manage("migrate").returncode == 0
    server.release()
    service = fresh("other", DATABASE_URL=server.url, CDB_IOV_MODE="discrete")
    process = gunicorn(service)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                status, _, _ = raw(service.port, READY)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline and process.poll() is None
                time.sleep(0.1)
        assert status == 503
        server.acquire()
        seen = {JobClient(service.port).call("GET", LOOKUP)[0] for _ in range(20)}
        time.sleep(2)
        seen |= {JobClient(service.port).call("GET", LOOKUP)[0] for _ in range(20)}
        assert seen == {504} and raw(service.port, READY)[0] == 503
    finally:
        process.terminate()
        assert CONFLICT in process.communicate(timeout=60)[1]
        server.release()
