"""HTTP over a real socket: behaviour that an in-process client cannot show."""

import json
import os
import socket
import time

import psutil
import pytest

from cdb.embedded.server import EmbeddedPostgres
from tests.e2e.clients import request
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


def test_nested_answers_of_half_a_million_iovs_are_streamed_in_bounded_memory(fresh):
    service = fresh(SCENARIO="heavy-usage").start()
    workers = service.programs("granian")
    before = max(process.memory_info().rss for process in workers)
    for path in (b"globalTag/heavy-usage", b"piov"):
        iovs, highest = 0, 0
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(request(b"GET", path, b"Connection: close\r\n"))
            tail = b""
            while piece := connection.recv(1 << 20):
                data = tail + piece
                iovs += data.count(b'"payload_url"')
                tail = data[-len(b'"payload_url"') + 1 :]
                highest = max(highest, *(process.memory_info().rss for process in workers))
        assert iovs == 500_000, path
        assert highest - before < 60 << 20, path
    client = JobClient(service.port)
    # What only wants the status is answered from the tag's own row.
    assert client.get("globalTag/heavy-usage?light")["payload_iov_count"] == 500_000
    # A client that leaves half-way frees its thread and its transaction.
    for _ in range(10 * (os.cpu_count() or 1)):
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(request(b"GET", b"gt"))
            connection.recv(1000)
    assert len(client.get("payloadiovs/?gtName=heavy-usage&majorIOV=4999&minorIOV=0")) == 100
    assert not any("Exception ignored" in line for line in service.lines)
    deadline = time.monotonic() + 60
    code = (
        "from django.db import connection as c; u = c.cursor(); "
        "u.execute(\"SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%' OR state = 'active'\"); "
        "print('open:', u.fetchone()[0] - 1)"
    )
    while "open: 0" not in (found := service.manage("shell", "-c", code).stdout):
        assert time.monotonic() < deadline, found
