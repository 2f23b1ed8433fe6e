"""Compiled lists in a running service: which are made by themselves, used, and deleted."""

from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest

from cdb.embedded.server import EmbeddedPostgres
from tests.e2e.faults import frozen_database
from tests.e2e.service import JobClient, Service, raw
from tests.e2e.test_metrics import Metrics
from tests.waiting import eventually

# Enough that compiling a frozen copy of `tiny` is worth it: its ten lists, and a tenth of a second.
ENOUGH_LOOKUPS = 1100
# A name that an adopted database may have, and that looks like an option.
OFTEN = "--version"


@pytest.fixture(scope="module")
def compiling(new_directory):
    with Service(new_directory() / "data", CDB_COMPILED_BYTES="50000000", CDB_WORKERS="2").running() as running:
        yield running


def look_up(service, tag="tiny", more=""):
    """Status and body of a lookup, as it is sent."""
    path = f"/api/cdb_rest/payloadiovs/?gtName={tag}&majorIOV=5&minorIOV=0{more}"
    status, _, body = raw(service.port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    return status, body


def compiled(service):
    """The lookups from compiled lists by the part of the database."""
    found = Metrics(service.port).by("cdb_compiled_lookups_total", "database")
    return {kind: number for (kind,), number in found.items()}


def answered(service, kind, *arguments):
    """Whether this lookup is answered in that way by now."""
    before = compiled(service).get(kind, 0)
    look_up(service, *arguments)
    return compiled(service).get(kind, 0) > before


def tags(service):
    """The names of the tags for which lists were compiled."""
    lines = service.manage("compiled").stdout.splitlines()
    return {line.split()[0] for line in lines[1:-1]}


def freeze(service, name):
    client = JobClient(service.port)
    assert client.call("POST", f"cloneGlobalTag/tiny/{name}")[0] == 200
    for status in ("locked", "frozen"):
        assert client.call("PUT", f"gt_change_status/{name}/{status}")[0] == 200


def rename(service, name, new):
    with psycopg2.connect(EmbeddedPostgres(service.data / "postgres").url) as connection:
        connection.cursor().execute('UPDATE "GlobalTag" SET name = %s WHERE name = %s', [new, name])


def test_a_tag_that_is_asked_often_is_compiled_if_that_saves_time(compiling):
    freeze(compiling, "often")
    rename(compiling, "often", OFTEN)
    for name in ("tiny", OFTEN):
        expected = look_up(compiling, name)
        with ThreadPoolExecutor(8) as pool:
            bodies = pool.map(lambda _, name=name: look_up(compiling, name), range(ENOUGH_LOOKUPS))
            assert set(bodies) == {expected}
    eventually(lambda: Metrics(compiling.port).sum("cdb_compilations_total", outcome="success"), 1)
    eventually(lambda: answered(compiling, "none", OFTEN), True)
    assert look_up(compiling, OFTEN) == expected
    # The ten lists of `tiny` take PostgreSQL no longer than to say that nothing has changed.
    assert tags(compiling) == {OFTEN}
    assert Metrics(compiling.port).sum("cdb_compilations_total", outcome="failure") == 0


def test_a_write_is_seen_at_once(compiling):
    client = JobClient(compiling.port)
    compile_now(compiling, "tiny")
    kind = client.get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")[0][0]
    for number in range(20):
        row = {"global_tag": "tiny", "payload_type": kind, "payload_url": f"new{number}", "checksum": "c"}
        assert client.call("POST", "payload-iovs/insert", row | {"since": [5, 0], "until": "next"})[0] == 200
        assert client.get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")[0][1] == f"new{number}"
    # Not each of them: a process may open the file half a second later.
    assert compiled(compiling).get("changed", 0) + compiled(compiling).get("all", 0) >= 1
    # The changed list is compiled again by itself.
    eventually(lambda: answered(compiling, "confirmed"), True)


def compile_now(service, name, *arguments):
    found = service.manage("compile_tag", name, *arguments)
    assert found.returncode == 0, found.stderr
    more = f"&rev={arguments[1]}" if arguments else ""
    eventually(lambda: answered(service, "none" if more else "confirmed", name, more), True)


def test_a_frozen_tag_is_answered_while_the_database_is_silent(compiling):
    freeze(compiling, "cold")
    found = compiling.manage("compile_tag", "cold")
    assert found.returncode == 0, found.stderr
    expected = look_up(compiling, "cold")
    # Until each process has asked the database once.
    eventually(lambda: all(answered(compiling, "none", "cold") for _ in range(30)), True)
    with frozen_database(compiling):
        assert {look_up(compiling, "cold") for _ in range(30)} == {expected}
