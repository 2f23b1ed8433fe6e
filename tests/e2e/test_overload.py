"""Overload of `make serve`: each client gets a response, either the result or a 504 in JSON."""

import http.client
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.faults import LOOKUP, locked
from tests.e2e.service import JobClient, Service, raw
from tests.e2e.test_metrics import eventually, workers

SETTINGS = {
    "CDB_WORKERS": "1",
    "CDB_THREADS": "2",
    "CDB_LOOKUP_TIMEOUT_SECONDS": "60",
    "CDB_QUEUE_TIMEOUT_SECONDS": "2",
    "CDB_COMPILED_BYTES": "0",
}
HEAVY = ("global-tags/tiny/diff/tiny", "global-tags/tiny/export", "gt", "piov")


@pytest.fixture(scope="module")
def limited(new_directory, needs_packages):
    """A service with two threads for lookups, for which a request may wait for two seconds."""
    with Service(new_directory() / "data", "serve", **SETTINGS).running() as service:
        yield service


def look_up(port, moment):
    return JobClient(port).call("GET", f"payloadiovs/?gtName=tiny&majorIOV=5&minorIOV={moment}")


def test_lookups_that_have_waited_for_too_long_are_refused_and_others_are_not(limited):
    with ThreadPoolExecutor(40) as pool:
        with locked(limited, "PayloadIOV"):
            # Two have a thread and wait for the table; the others wait for a thread.
            waiting = [pool.submit(look_up, limited.port, moment) for moment in range(40)]
            time.sleep(4)
            # Another pool, and nothing of the table.
            assert JobClient(limited.port).call("POST", "pt", {"name": "Beside"})[0] == 200
        answers = [one.result() for one in waiting]
    refused = [body for status, body in answers if status == 504]
    assert {status for status, _ in answers} == {200, 504} and {body["code"] for body in refused} == {"overloaded"}
    assert 2 <= len(answers) - len(refused) <= 6
    eventually(lambda: look_up(limited.port, 99)[0], 200)


def test_a_refusal_tells_when_to_come_again_and_keeps_the_connection(limited):
    with ThreadPoolExecutor(2) as pool, locked(limited, "PayloadIOV"):
        waiting = [pool.submit(look_up, limited.port, moment) for moment in range(200, 202)]
        time.sleep(1)
        connection = http.client.HTTPConnection("127.0.0.1", limited.port, timeout=90)
        connection.request("GET", f"/api/cdb_rest/{LOOKUP}3")
        own = connection.sock
        time.sleep(4)
        [killed] = [one for one in waiting if one.running()][:1]
    response = connection.getresponse()
    document = json.loads(response.read())
    assert response.status == 504 and document["code"] == "overloaded" and int(response.getheader("Retry-After")) > 0
    assert killed.result()[0] == 200 and connection.sock is own
    connection.request("GET", f"/api/cdb_rest/{LOOKUP}4")
    assert connection.getresponse().status == 200


def test_heavy_reads_above_the_limit_are_refused_at_once_and_other_requests_are_not(limited):
    client = JobClient(limited.port)
    with ThreadPoolExecutor(20) as pool:
        with locked(limited, "PayloadIOV"):
            heavy = [pool.submit(client.call, "GET", "piov") for _ in range(20)]
            # All but those that have a place.
            eventually(lambda: sum(one.done() for one in heavy) >= 15, True)
            assert {one.result()[0] for one in heavy if one.done()} == {504}
            status, headers, body = raw(limited.port, b"GET /api/cdb_rest/piov HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert status == 504 and int(headers["retry-after"]) > 0 and json.loads(body)["code"]
            for path in ("globalTags", "pt", "gtPayloadLists/tiny", "payload-lists?page=1"):
                assert client.call("GET", path)[0] == 200, path
            assert client.call("POST", "pt", {"name": "BesideHeavy"})[0] == 200
        statuses = [one.result()[0] for one in heavy]
    assert 200 in statuses
    for path in HEAVY[2:]:
        eventually(lambda path=path: client.call("GET", path)[0], 200)


def test_thousands_of_connections_are_all_served_in_constant_memory(fresh, needs_packages):
    service = fresh(command="serve", CDB_WORKERS="1", CDB_THREADS="2", CDB_QUEUE_TIMEOUT_SECONDS="60").start()
    request = f"GET /api/cdb_rest/{LOOKUP} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    raw(service.port, request)
    [worker] = workers(service, "granian")[-1:]
    before = worker.memory_full_info().uss
    for _ in range(2):
        connections = []
        try:
            for _ in range(1500):
                connections.append(socket.create_connection(("127.0.0.1", service.port), timeout=60))
                connections[-1].sendall(request)
            for connection in connections:
                response = http.client.HTTPResponse(connection)
                response.begin()
                assert (response.status, len(json.loads(response.read()))) == (200, 10)
        finally:
            for connection in connections:
                connection.close()
    assert worker.memory_full_info().uss - before < 60 << 20
