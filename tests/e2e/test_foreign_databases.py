"""A command on the database of another application ends with one line and changes nothing."""

import re
import shutil
import subprocess

import psycopg2
import pytest

from cdb.embedded import binaries
from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ROOT

NOPAYLOADDB = (ROOT / "tests/migrations/nopayloaddb.sql").read_text()
REFUSAL = (
    "CommandError: the database belongs to another application, such as nopayloaddb, or to a development version of cdb: "
    "this version has no migration 0001_initial. Nothing was changed. "
)


def fill(server):
    connection = psycopg2.connect(server.url)
    with connection:
        connection.cursor().execute(NOPAYLOADDB)
    connection.close()


def dump(server):
    """The whole database as pg_dump writes it."""
    command = [binaries.BINARIES / "pg_dump", server.url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # A new random word each time.
    return re.sub(r"^\\(un)?restrict .*\n", "", text, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def foreign(new_directory):
    """A server with a database of nopayloaddb."""
    server = EmbeddedPostgres(new_directory() / "postgres")
    server.acquire()
    fill(server)
    yield server
    server.release()


@pytest.mark.parametrize("command", [["migrate"], ["run"], ["serve"], ["prepare"]], ids=" ".join)
def test_each_command_that_migrates_refuses_in_one_line(foreign, fresh, needs_packages, command):
    before = dump(foreign)
    assert "beamspot_5.root" in before
    refused = fresh(DATABASE_URL=foreign.url).manage(*command)
    assert refused.returncode == 1
    assert refused.stderr == f"{REFUSAL}Set DATABASE_URL to an empty database or to one of cdb.\n"
    assert dump(foreign) == before


def test_a_data_directory_of_an_earlier_development_version_is_refused_until_it_is_removed(fresh):
    service = fresh(is_first_start=True)
    server = EmbeddedPostgres(service.data / "postgres")
    server.acquire()
    fill(server)
    server.release()
    refused = service.manage("run")
    assert refused.returncode == 1
    assert refused.stderr == f"{REFUSAL}Remove {service.data}/postgres to start with a new database.\n"
    assert service.family() == []
    shutil.rmtree(service.data / "postgres")
    service.start()
    assert service.stop() == 0
