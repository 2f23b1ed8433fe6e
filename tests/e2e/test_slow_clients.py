"""Clients that send or receive slowly: they occupy no thread, and get complete responses."""

import contextlib
import http.client
import socket
import struct
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest

from cdb.embedded.server import EmbeddedPostgres
from tests.e2e.faults import LOOKUP
from tests.e2e.refused import request
from tests.e2e.service import JobClient, Service

# More than there are threads, and with `make serve`, than were once requests of writers at a time.
SLOW = 200
# A request that waits for a thread for longer than five seconds is refused.
FEW = {"CDB_WORKERS": "1", "CDB_THREADS": "2", "CDB_QUEUE_TIMEOUT_SECONDS": "5"}
# Where the requests themselves are so large that others have to wait for them.
PATIENT = FEW | {"CDB_QUEUE_TIMEOUT_SECONDS": "60"}


def started(directory, command, **settings):
    return Service(directory / command, command, **settings).start()


@pytest.fixture(scope="module", params=["run", "serve"])
def few(request, needs_packages, new_directory):
    """Services with few threads, in both shapes."""
    running = started(new_directory(), request.param, **FEW)
    yield running
    running.stop()


@contextlib.contextmanager
def opened(port, number, sent, address="127.0.0.1"):
    """Connections from an address on which each has sent something."""
    connections = [socket.socket() for _ in range(number)]
    try:
        for connection in connections:
            # The kernel would take megabytes for a client that reads nothing.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            connection.settimeout(60)
            connection.bind((address, 0))
            connection.connect(("127.0.0.1", port))
        for place, connection in enumerate(connections):
            connection.sendall(sent(place))
        yield connections
    finally:
        for connection in connections:
            connection.close()


def others_are_answered(service):
    """What the other clients ask, of each kind, is answered with 200, over and over."""
    client = JobClient(service.port)
    tag = client.get("globalTags")[0]["name"]
    for _ in range(5):
        assert len(client.get(LOOKUP.replace("tiny", tag))) >= 10
        assert client.get("piov/1")["id"] == 1
        assert client.call("POST", "pt", {"name": f"beside{uuid.uuid4().hex}"})[0] == 200
        time.sleep(0.1)


def begun_body(_):
    return request(b"POST", b"pt", b"Content-Type: application/json\r\nContent-Length: 10000000\r\n") + b"{"


def test_slow_bodies_block_no_other_client(few):
    with opened(few.port, SLOW, begun_body) as connections:
        others_are_answered(few)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.sendall(b'"')
        others_are_answered(few)


def test_slow_heads_block_no_other_client(few):
    with opened(few.port, SLOW, lambda place: b"GET /api/cdb_rest/gt HTTP/1.1\r\nHost: l"[: 1 + place % 40]):
        others_are_answered(few)


def test_idle_connections_block_no_other_client(few):
    with opened(few.port, SLOW, lambda _: b""):
        others_are_answered(few)


def test_a_client_that_hangs_up_before_it_is_told_to_go_on_ends_no_process(few):
    addresses = list((few.data / "serve").glob("**/*.sock")) or [("127.0.0.1", few.port)]
    workers = {process.pid for process in few.programs("gunicorn")}
    waiting = request(b"POST", b"pt", b"Content-Length: 100\r\nExpect: 100-continue\r\n")
    for number in range(50):
        for address in addresses:
            with socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX) as connection:
                connection.connect(address if isinstance(address, tuple) else str(address))
                if number % 2:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.sendall(waiting)
    others_are_answered(few)
    assert {process.pid for process in few.programs("gunicorn")} == workers


def large_reads(port, number):
    """Connections from another address that ask for a large response and take nothing of it."""
    return opened(port, number, lambda _: request(b"GET", b"gt"), address="127.0.0.2")


@pytest.mark.parametrize("command", ["run", "serve"])
def test_readers_of_large_responses_leave_room_for_others(needs_packages, new_directory, command):
    """Be they slow or fast: they get no more than all threads but one."""
    service = started(new_directory(), command, SCENARIO="moderate", **FEW)
    done = threading.Event()

    def read():
        statuses = set()
        while not done.is_set():
            with large_reads(service.port, 1) as [connection]:
                response = http.client.HTTPResponse(connection)
                response.begin()
                response.read()
                statuses.add(response.status)
        return statuses

    with large_reads(service.port, 40):
        others_are_answered(service)
    with ThreadPoolExecutor(10) as pool:
        readers = [pool.submit(read) for _ in range(10)]
        others_are_answered(service)
        done.set()
        # Those that have to wait for the others for too long are told to come again.
        assert {200} <= set().union(*(reader.result() for reader in readers)) <= {200, 504}
    assert service.stop() == 0


def test_a_process_that_is_to_be_replaced_waits_for_slow_readers_and_serves_others(new_directory):
    """After 100 requests, while 8 responses are made and taken slowly: its successor comes when it has ended."""
    settings = {"SCENARIO": "moderate", "GUNICORN_CMD_ARGS": "--max-requests=100 --max-requests-jitter=0"}
    times = dict.fromkeys(("CDB_LOCK_TIMEOUT_SECONDS", "CDB_STATEMENT_TIMEOUT_SECONDS"), "60")
    service = started(new_directory(), "run", **PATIENT | settings | times)
    [worker] = service.programs("gunicorn: worker") or [
        max(service.programs("gunicorn"), key=lambda one: one.create_time())
    ]
    database = psycopg2.connect(EmbeddedPostgres(service.data / "postgres").url)
    with contextlib.closing(database), opened(service.port, 8, lambda _: request(b"GET", b"gt")) as connections:
        # None of the 8 has a response before all of the others have theirs.
        database.cursor().execute('LOCK TABLE "GlobalTag" IN ACCESS EXCLUSIVE MODE')
        client = JobClient(service.port)
        for _ in range(100):
            client.get("piov/1")
        time.sleep(2)
        database.rollback()
        others_are_answered(service)
        assert worker.is_running()
        responses = [http.client.HTTPResponse(connection) for connection in connections]
        for response in responses:
            response.begin()
            assert response.read().count(b'"payload_url"') == 20_000
    worker.wait(60)
    others_are_answered(service)
    assert service.stop() == 0


def test_slow_readers_block_no_other_client_and_get_all(needs_packages, new_directory):
    """They read nothing for longer than nginx and gunicorn once waited, and then all of it."""
    directory = new_directory()
    settings = PATIENT | {"SCENARIO": "moderate"}
    services = [started(directory, command, **settings) for command in ("run", "serve")]
    with contextlib.ExitStack() as readers:
        responses = []
        for service in services:
            # Twice as many as there are threads for them.
            for connection in readers.enter_context(opened(service.port, 8, lambda _: request(b"GET", b"gt"))):
                responses.append(http.client.HTTPResponse(connection))
        for response in responses:
            response.begin()
        time.sleep(17)
        for service in services:
            others_are_answered(service)
        with ThreadPoolExecutor(len(responses)) as pool:
            bodies = list(pool.map(lambda response: response.read(), responses))
    assert {response.status for response in responses} == {200}
    assert {body.count(b'"payload_url"') for body in bodies} == {20_000}
    for service in services:
        assert not list((service.data / "spool").iterdir())
        assert service.stop() == 0
