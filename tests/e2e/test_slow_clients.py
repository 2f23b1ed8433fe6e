"""Clients of `make serve` that send or receive slowly: they occupy no thread, and get complete responses."""

import contextlib
import http.client
import socket
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.clients import request
from tests.e2e.faults import LOOKUP
from tests.e2e.service import JobClient, Service

# More than there are threads.
SLOW = 200


@pytest.fixture(scope="module")
def few(needs_packages, new_directory):
    """A service with few threads."""
    settings = {"CDB_WORKERS": "1", "CDB_THREADS": "2", "SCENARIO": "moderate"}
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
