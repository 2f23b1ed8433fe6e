"""Exports and other long responses by the running service: clients that disconnect or read nothing, failures in the middle."""

import contextlib
import http.client
import socket
from collections.abc import Iterator

import psycopg2
import pytest

from cdb.embedded.server import EmbeddedPostgres
from tests.e2e.clients import request
from tests.e2e.service import JobClient, Service
from tests.e2e.test_metrics import workers
from tests.waiting import wait_until

TAG = "heavy-usage"
ROWS = 500_000
RUNNING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '/*request_id=%*/ COPY%' AND state = 'active'"
# What runs, waits, or idles inside a transaction.
BUSY = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE state <> 'idle' AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)

KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '/*request_id=%*/ COPY%' AND state = 'active'"


class Watcher:
    """A connection of its own to the database of a service."""

    def __init__(self, service: Service) -> None:
        self._connection = psycopg2.connect(EmbeddedPostgres(service.data / "postgres").url)
        self._connection.autocommit = True

    def value(self, query: str) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchone()[0]

    def is_free(self) -> bool:
        return self.value(BUSY) == 0

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def begun(port: int, query: str = "", *, tag: str = TAG) -> Iterator[http.client.HTTPResponse]:
    """An export of which some has been read; the client goes away with the block."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", f"/api/cdb_rest/global-tags/{tag}/export{query}")
        response = connection.getresponse()
        assert response.status == 200
        assert response.read(1000).startswith(b"payload_type,")
        yield response
    finally:
        # The response has a hold of the socket as well.
        response.close()
        connection.close()


LARGEST_WORKER_BYTES = 100_000_000


@pytest.fixture(scope="module")
def exporting(new_directory):
    """A service with a single process, in which exports last as long as their clients take to read them."""
    with Service(new_directory() / "data", SCENARIO=TAG, CDB_THREADS="5").running() as running:
        yield running


@pytest.fixture
def watcher(exporting):
    made = Watcher(exporting)
    wait_until(made.is_free)
    yield made
    made.close()


@pytest.fixture
def client(exporting):
    return JobClient(exporting.port)


def lookup(client):
    return client.get(f"payloadiovs/?gtName={TAG}&majorIOV=5&minorIOV=0")


def export(exporting):
    connection = http.client.HTTPConnection("127.0.0.1", exporting.port, timeout=60)
    connection.request("GET", f"/api/cdb_rest/global-tags/{TAG}/export")
    response = connection.getresponse()
    assert response.status == 200
    count = 0
    while piece := response.read(1 << 20):
        count += piece.count(b"\n")
    connection.close()
    return count


def test_a_whole_export_takes_little_memory(exporting, watcher):
    [worker] = workers(exporting, "granian")
    before = worker.memory_info().rss
    with begun(exporting.port) as response:
        rows, most = 0, before
        while piece := response.read(1 << 20):
            rows += piece.count(b"\n")
            most = max(most, worker.memory_info().rss)
    # The first bytes had some rows already.
    assert ROWS - 20 < rows <= ROWS
    assert most < LARGEST_WORKER_BYTES and most - before < 20_000_000, (before, most)


def test_clients_that_go_away_free_thread_and_connection_at_once(exporting, watcher, client):
    # More often than there are threads.
    for _ in range(8):
        with begun(exporting.port):
            pass
        wait_until(watcher.is_free)
    assert lookup(client) and export(exporting) == ROWS + 1


def test_a_failure_in_the_middle_does_not_look_like_the_end(exporting, watcher, client):
    with begun(exporting.port) as response:
        wait_until(lambda: watcher.value(RUNNING) == 1)
        assert watcher.value(KILL)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            while response.read(1 << 20):
                pass
    wait_until(watcher.is_free)
    assert all(lookup(client) for _ in range(6)) and export(exporting) == ROWS + 1


def test_nested_responses_of_half_a_million_iovs_are_streamed_in_bounded_memory(exporting, watcher, client):
    [worker] = workers(exporting, "granian")
    before = worker.memory_info().rss
    for path in (f"globalTag/{TAG}".encode(), b"piov"):
        iovs, highest, tail = 0, 0, b""
        with socket.create_connection(("127.0.0.1", exporting.port)) as connection:
            connection.sendall(request(b"GET", path, b"Connection: close\r\n"))
            while piece := connection.recv(1 << 20):
                data = tail + piece
                iovs += data.count(b'"payload_url"')
                tail = data[-len(b'"payload_url"') + 1 :]
                highest = max(highest, worker.memory_info().rss)
        assert iovs == ROWS, path
        assert highest - before < 60 << 20, path
    # What only wants the status is answered from the tag's own row.
    assert client.get(f"globalTag/{TAG}?light")["payload_iov_count"] == ROWS
    # A client that leaves half-way frees its thread and its transaction.
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", exporting.port)) as connection:
            connection.sendall(request(b"GET", b"gt"))
            connection.recv(1000)
    assert len(lookup(client)) == 100
    wait_until(watcher.is_free)
    assert not any("Exception ignored" in line for line in exporting.lines)


def test_an_export_is_of_one_state(exporting, watcher, client):
    assert client.call("POST", f"cloneGlobalTag/{TAG}/deleted", None)[0] == 200
    with begun(exporting.port, tag="deleted") as response:
        wait_until(lambda: watcher.value(RUNNING) == 1)
        assert client.call("DELETE", "deleteGlobalTag/deleted")[0] == 200
        rows = 0
        while piece := response.read(1 << 20):
            rows += piece.count(b"\n")
    # The first bytes had some rows already.
    assert ROWS - 20 < rows <= ROWS
