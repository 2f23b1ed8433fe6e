"""/metrics of `make run`: requests that never reached the application, and errors."""

import http.client
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.counting import LOOKUP, Metrics, eventually
from tests.e2e.faults import frozen_database
from tests.e2e.service import JobClient, Service, raw
from tests.e2e.test_overload import occupied


@pytest.fixture(scope="module")
def small(new_directory):
    running = Service(
        new_directory() / "data",
        CDB_WORKERS="1",
        CDB_THREADS="2",
        CDB_QUEUE_TIMEOUT_SECONDS="1",
        CDB_LOCK_TIMEOUT_SECONDS="30",
        CDB_LOOKUP_TIMEOUT_SECONDS="30",
    ).start()
    yield running
    running.stop()


def test_each_refusal_is_counted(small):
    before = Metrics(small.port)
    with occupied(small), ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(JobClient(small.port).call, "GET", "pt") for _ in range(20)]
        assert {one.result()[0] for one in asked} == {504}
    eventually(lambda: Metrics(small.port).sum("cdb_queue_timeouts_total"), 20)
    after = Metrics(small.port)
    assert after.sum("cdb_errors_total", code="overloaded") == 20
    assert after.sum("cdb_requests_total", status="504") - before.sum("cdb_requests_total", status="504") == 20
    slow = [
        metrics.sum("cdb_queue_seconds_count") - metrics.sum("cdb_queue_seconds_bucket", le="1.0")
        for metrics in (before, after)
    ]
    assert slow[1] - slow[0] >= 20


def test_invalid_http_is_counted(small):
    assert raw(small.port, b"NONSENSE\r\n\r\n")[0] == 400
    eventually(lambda: Metrics(small.port).sum("cdb_errors_total", code="malformed_request"), 1)


def test_words_and_paths_of_clients_are_no_labels(small):
    for number in range(5):
        raw(small.port, f"BREW{number} /pot{number} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    eventually(lambda: Metrics(small.port).sum("cdb_requests_total", method="other", route="unknown") >= 5, True)
    text = Metrics(small.port).text
    assert "BREW" not in text and "pot" not in text


def test_an_answer_that_is_not_taken_to_its_end_is_counted(small):
    assert small.manage("seed_scenario", "moderate").returncode == 0
    connection = http.client.HTTPConnection("127.0.0.1", small.port, timeout=20)
    connection.request("GET", "/api/cdb_rest/global-tags/moderate/export")
    connection.getresponse().read(1000)
    connection.sock.close()
    connection.close()
    eventually(lambda: Metrics(small.port).sum("cdb_exports_in_progress"), 0)
    eventually(lambda: Metrics(small.port).sum("cdb_requests_in_progress"), 1)


def test_time_in_the_database_and_bytes_are_counted_by_route(small):
    names = ("cdb_response_bytes_total", "cdb_request_queries_total", "cdb_requests_total")

    def figures():
        metrics = Metrics(small.port)
        return [metrics.sum(name, route=LOOKUP) for name in names]

    before, size = figures(), 0
    for number in range(10):
        target = f"/api/cdb_rest/payloadiovs/?gtName=tiny&majorIOV=5&minorIOV={number}"
        request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        size += len(raw(small.port, request.encode())[2])
    eventually(lambda: [new - old for new, old in zip(figures(), before, strict=True)], [size, 10, 10])
    found = Metrics(small.port)
    seconds = found.sum("cdb_request_database_seconds_total", route=LOOKUP)
    assert 0 < seconds < found.sum("cdb_request_duration_seconds_sum", route=LOOKUP)


def test_an_outage_is_counted_and_metrics_are_told_meanwhile(small):
    before = Metrics(small.port)
    with frozen_database(small):
        assert Metrics(small.port).sum("cdb_database_up") == 0
    eventually(lambda: Metrics(small.port).sum("cdb_database_up"), 1)
    assert Metrics(small.port).sum("cdb_database_outages_total") > before.sum("cdb_database_outages_total")
