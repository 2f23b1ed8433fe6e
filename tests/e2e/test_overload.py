"""Overload of `make serve`, and clients that send or receive slowly: each client gets a complete response."""

import contextlib
import http.client
import json
import socket
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.clients import request
from tests.e2e.faults import LOOKUP, locked
from tests.e2e.service import JobClient, Service, raw
from tests.e2e.test_metrics import workers
from tests.waiting import eventually

SETTINGS = {
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
    service = fresh(command="serve", CDB_THREADS="2", CDB_QUEUE_TIMEOUT_SECONDS="60").start()
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


# More than there are threads.
SLOW = 200


@pytest.fixture(scope="module")
def few(needs_packages, new_directory):
    """A service with few threads."""
    settings = {"CDB_THREADS": "2", "SCENARIO": "moderate"}
    with Service(new_directory() / "data", "serve", **settings).running() as running:
        yield running


@contextlib.contextmanager
def opened(port, number, sent):
    """Connections on which each has sent something."""
    connections = [socket.socket() for _ in range(number)]
    try:
        for place, connection in enumerate(connections):
            # The kernel would take megabytes for a client that reads nothing.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            connection.settimeout(60)
            # Another address: nginx limits how many bodies may be on their way from one.
            connection.bind(("127.0.0.2", 0))
            connection.connect(("127.0.0.1", port))
            connection.sendall(sent(place))
        yield connections
    finally:
        for connection in connections:
            connection.close()


def others_are_answered(service):
    """What other clients ask, of each kind, is answered with 200, over and over."""
    client = JobClient(service.port)
    for _ in range(5):
        assert len(client.get(LOOKUP.replace("tiny", "moderate"))) >= 10
        assert client.get("piov/1")["id"] == 1
        assert client.call("POST", "pt", {"name": f"beside{uuid.uuid4().hex}"})[0] == 200
        time.sleep(0.1)


SENT = {
    "bodies": lambda _: request(b"POST", b"pt", b"Content-Type: application/json\r\nContent-Length: 100000\r\n") + b"{",
    "heads": lambda place: b"GET /api/cdb_rest/gt HTTP/1.1\r\nHost: l"[: 1 + place % 40],
    "nothing": lambda _: b"",
}


@pytest.mark.parametrize("kind", SENT)
def test_clients_that_send_slowly_block_no_other_client(few, kind):
    with opened(few.port, SLOW, SENT[kind]):
        others_are_answered(few)


def test_clients_that_read_slowly_block_no_other_client_and_get_all(few):
    # No more than may read at the same time from one address.
    with opened(few.port, 2, lambda _: request(b"GET", b"gt", b"Connection: close\r\n")) as connections:
        responses = [http.client.HTTPResponse(connection) for connection in connections]
        for response in responses:
            response.begin()
        time.sleep(5)
        others_are_answered(few)
        with ThreadPoolExecutor(len(responses)) as pool:
            bodies = list(pool.map(lambda response: response.read(), responses))
    assert {response.status for response in responses} <= {200, 504} and responses[0].status == 200
    assert bodies[0].count(b'"payload_url"') == 20_000
