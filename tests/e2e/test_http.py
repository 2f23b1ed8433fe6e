"""HTTP over a real socket: behaviour that an in-process client cannot show."""

import json
import time

import psutil
import pytest

from cdb.embedded.server import EmbeddedPostgres
from tests.e2e.service import JobClient, raw


@pytest.mark.parametrize("name", ["Ösel", "with space", "a#b", "a\x7fb"])
def test_characters_that_must_be_percent_encoded_are_named(served, name):
    target = f"/api/cdb_rest/globalTag/{name}?light".encode()
    status, headers, body = raw(served.port, b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % target)
    assert (status, headers["content-type"]) == (400, "application/json")
    assert json.loads(body)["code"] == "malformed_request"


def test_while_the_database_is_away_answers_are_504_and_then_all_is_well_again(fresh, new_directory):
    server = EmbeddedPostgres(new_directory() / "elsewhere")
    server.acquire()
    service = fresh(DATABASE_URL=server.url).start()
    client = JobClient(service.port)
    lookup = "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"
    before = client.get(lookup)
    psutil.Process(int((server.data / "postmaster.pid").read_text().split()[0])).kill()
    # Its children notice within a moment.
    time.sleep(0.5)
    for path in (lookup, "globalTags", "globalTag/tiny", "gt"):
        status, error = client.call("GET", path)
        assert (status, error["code"]) == (504, "database_unavailable"), error
    status, error = client.call("POST", "gt", {"name": "x", "status": "unlocked"})
    assert (status, error["code"]) == (504, "database_unavailable")
    ready, _, _ = raw(service.port, b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
    live, _, _ = raw(service.port, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (ready, live) == (503, 200)
    assert server.restart_if_ended()
    # Each process looks for it every half second. Every thread of every one had a connection that is lost by now.
    time.sleep(2)
    assert all(client.get(lookup) == before for _ in range(100))
    assert all(client.call("POST", "gt", {"name": f"x{n}", "status": "unlocked"})[0] == 200 for n in range(50))
    service.stop()
    server.release()
