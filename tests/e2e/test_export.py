"""Exports by the running service: clients that disconnect or read nothing, too many exports, and failures in the middle."""

import contextlib
import http.client
import os
import signal
import socket
import time

import psutil
import pytest

from cdb.embedded.server import EmbeddedPostgres
from tests.e2e.exporting import BUSY, KILL, PLACES, ROWS, RUNNING, TAG, Watcher, begun, wait_until
from tests.e2e.service import JobClient, Service

LARGEST_WORKER_BYTES = 100_000_000


@pytest.fixture(scope="module")
def exporting(new_directory):
    """A service with a single process, in which exports last as long as their clients take to read them."""
    settings = {"CDB_WORKERS": "1", "CDB_THREADS": "5", "CDB_SPOOL_BYTES": "0"}
    with Service(new_directory() / "data", SCENARIO=TAG, **settings).running() as running:
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


def workers(exporting):
    return [one for one in exporting.programs("gunicorn") if one.parent().pid != exporting.process.pid]


def test_a_whole_export_takes_little_memory(exporting, watcher):
    [worker] = workers(exporting)
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
    # More often than there are threads or places.
    for _ in range(8):
        with begun(exporting.port):
            assert watcher.value(PLACES) == 1
        wait_until(watcher.is_free)
    assert lookup(client) and export(exporting) == ROWS + 1


def test_one_too_many_is_told_to_come_again_and_lookups_go_on(exporting, watcher, client):
    with begun(exporting.port), contextlib.ExitStack() as second:
        second.enter_context(begun(exporting.port))
        wait_until(lambda: watcher.value(RUNNING) == 2)
        status, answer = client.call("GET", f"global-tags/{TAG}/export")
        assert (status, answer["code"]) == (504, "overloaded")
        assert len(lookup(client)) > 90
        second.close()
        wait_until(lambda: watcher.value(PLACES) <= 1)
        assert export(exporting) == ROWS + 1


def test_a_body_that_is_announced_and_does_not_come_holds_no_place(exporting, watcher, client):
    path = f"/api/cdb_rest/global-tags/{TAG}/export".encode()
    # Exports of clients that disconnected in the last test may still be running.
    wait_until(watcher.is_free)
    with socket.create_connection(("127.0.0.1", exporting.port), timeout=60) as connection:
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n" % path)
        # Long enough for an export to begin, and shorter than the service waits for the body.
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            assert watcher.value(PLACES) == 0
            time.sleep(0.02)
        connection.sendall(b" " * 10)
        assert connection.recv(12) == b"HTTP/1.1 200"
    wait_until(watcher.is_free)
    with socket.create_connection(("127.0.0.1", exporting.port), timeout=60) as connection:
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n" % path)
        assert connection.recv(12) == b"HTTP/1.1 400"
    assert watcher.is_free() and lookup(client)


def test_slow_clients_hold_no_place_and_get_every_row(exporting, watcher, fresh):
    spooling = fresh(
        "spooling", DATABASE_URL=EmbeddedPostgres(exporting.data / "postgres").url, CDB_WORKERS="1"
    ).start()
    with begun(spooling.port) as response, begun(spooling.port) as other:
        # Neither takes anything, and both places are free.
        wait_until(watcher.is_free, 60)
        assert export(spooling) == ROWS + 1
        for slow in (response, other):
            rows = 0
            while piece := slow.read(1 << 20):
                rows += piece.count(b"\n")
            assert ROWS - 20 < rows <= ROWS
    # A client that goes away leaves nothing in the spool.
    with begun(spooling.port):
        wait_until(watcher.is_free, 60)
    [worker] = workers(spooling)
    wait_until(lambda: not any("spool" in file.path for file in worker.open_files()))


def test_a_failure_in_the_middle_does_not_look_like_the_end(exporting, watcher, client):
    with begun(exporting.port) as response:
        wait_until(lambda: watcher.value(RUNNING) == 1)
        assert watcher.value(KILL)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            while response.read(1 << 20):
                pass
    wait_until(watcher.is_free)
    assert all(lookup(client) for _ in range(6)) and export(exporting) == ROWS + 1


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


def test_a_worker_that_dies_frees_its_places(exporting, watcher):
    with begun(exporting.port), begun(exporting.port):
        wait_until(lambda: watcher.value(PLACES) == 2)
        [worker] = workers(exporting)
        os.kill(worker.pid, signal.SIGKILL)
        wait_until(lambda: watcher.value(PLACES) == 0)
    wait_until(lambda: not psutil.pid_exists(worker.pid) or worker.status() == psutil.STATUS_ZOMBIE)
    wait_until(lambda: watcher.value(BUSY) == 0)
    wait_until(lambda: len(workers(exporting)) == 1)
    assert export(exporting) == ROWS + 1
