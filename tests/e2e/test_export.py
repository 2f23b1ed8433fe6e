"""Exports by the running service: clients that disconnect or read nothing, and failures in the middle."""

import http.client

import pytest

from tests.e2e.exporting import KILL, ROWS, RUNNING, TAG, Watcher, begun, wait_until
from tests.e2e.service import JobClient, Service
from tests.e2e.test_metrics import workers

LARGEST_WORKER_BYTES = 100_000_000


@pytest.fixture(scope="module")
def exporting(new_directory):
    """A service with a single process, in which exports last as long as their clients take to read them."""
    settings = {"CDB_WORKERS": "1", "CDB_THREADS": "5"}
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
