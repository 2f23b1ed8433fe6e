"""Log records of requests that the application never saw or could not handle: two of each, and the id in the response."""

import json
import signal

import psutil
import pytest

from tests.e2e.faults import LOOKUP
from tests.e2e.following import eventually
from tests.e2e.service import JobClient, free_port, raw
from tests.e2e.test_overload import occupied


def records_of(service, request_id):
    """What it wrote on standard error about a request."""
    records = [json.loads(line) for line in list(service.lines) if line.startswith("{")]
    return [record for record in records if record.get("request_id") == request_id]


@pytest.mark.parametrize(
    ("request_lines", "known"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: mine\r\nBad Header\r\n\r\n", "mine"),
        (b"GET / HTTP/1.1\r\nBad Header\r\nx-request-id:  mine-2 \r\nHost: localhost\r\n\r\n", "mine-2"),
        (b"GET / HTTP/1.1\r\nX-Request-ID: */mine\r\nBad Header\r\n\r\n", None),
        (b"nonsense\r\n\r\n", None),
        (b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", None),
    ],
)
def test_a_request_that_can_not_be_read(service, request_lines, known):
    # Another one before it, whose id must not be taken for this one's.
    raw(service.port, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: before\r\n\r\n")
    status, headers, _ = raw(service.port, request_lines)
    request_id = headers["x-request-id"]
    assert status == 400
    assert request_id == known if known else len(request_id) == 32
    found = eventually(lambda: len(records_of(service, request_id)) == 3 and records_of(service, request_id))
    assert [record["event"] for record in found[:2]] == ["started", "finished"]
    assert found[1]["status"] == 400 and found[1]["route"] is None
    assert found[2]["logger"] == "gunicorn.error" and found[2]["event"].startswith("Invalid request")


def test_a_request_whose_body_can_not_be_read(service):
    head = b"POST /api/cdb_rest/pt HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: torn-1\r\nTransfer-Encoding: chunked\r\n\r\n"
    status, headers, _ = raw(service.port, head + b"2\r\n{}\r\n0\r\nBad Trailer\r\n\r\n")
    assert (status, headers["x-request-id"]) == (400, "torn-1")
    raw(service.port, b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: after-torn\r\n\r\n")
    assert eventually(lambda: len(records_of(service, "after-torn")) == 2)
    events = [record["event"] for record in records_of(service, "torn-1") if record["logger"] == "cdb.request"]
    assert events == ["started", "finished"]


def test_a_request_that_waits_too_long_for_a_thread(small):
    with occupied(small):
        request = f"GET /api/cdb_rest/{LOOKUP} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: waits-1\r\n\r\n"
        status, headers, _ = raw(small.port, request.encode())
    assert (status, headers["x-request-id"]) == (504, "waits-1")
    started, finished = eventually(lambda: len(records_of(small, "waits-1")) == 2 and records_of(small, "waits-1"))
    assert (started["event"], finished["event"]) == ("started", "finished")
    assert (finished["level"], finished["status"], finished["queries"]) == ("warning", 504, 0)


def test_a_database_that_does_not_answer(fresh):
    """It is the watch over deadlines that gives up, in a thread of its own, and what it says has the request's id."""
    service = fresh(CDB_WORKERS="1", CDB_LOOKUP_TIMEOUT_SECONDS="1").start()
    assert JobClient(service.port).call("GET", LOOKUP)[0] == 200
    server = psutil.Process(int((service.data / "postgres/data/postmaster.pid").read_text().split("\n", 1)[0]))
    frozen = [server, *server.children(recursive=True)]
    for process in frozen:
        process.send_signal(signal.SIGSTOP)
    try:
        path = "/api/cdb_rest/payloadiovs/?gtName=tiny&majorIOV=2&minorIOV=0"
        status, _, _ = raw(
            service.port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: frozen-1\r\n\r\n".encode()
        )
        assert status == 504
        live, headers, _ = raw(
            service.port, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: live-1\r\n\r\n"
        )
        assert (live, headers["x-request-id"]) == (200, "live-1")
    finally:
        for process in frozen:
            process.send_signal(signal.SIGCONT)
    found = eventually(
        lambda: (
            (records := records_of(service, "frozen-1"))
            and "finished" in [record["event"] for record in records]
            and any(record["logger"] == "cdb_rest.connections.deadlines" for record in records)
            and records
        )
    )
    assert [record["event"] for record in found].count("started") == 1
    assert [record["event"] for record in found].count("finished") == 1
    [warning] = [record for record in found if record["logger"] == "cdb_rest.connections.deadlines"]
    assert warning["level"] == "warning" and "did not respond in time" in warning["event"]


def test_a_statsd_host_that_does_not_listen_fails_no_request(fresh):
    service = fresh(CDB_WORKERS="1", CDB_STATSD_HOST=f"127.0.0.1:{free_port()}").start()
    assert all(JobClient(service.port).call("GET", LOOKUP)[0] == 200 for _ in range(20))
    complaints = eventually(lambda: [line for line in service.lines if "Error sending message to statsd" in line])
    # The first process, and the one that answers.
    assert len(complaints) <= 2


def test_a_disk_that_is_full(fresh):
    service = fresh(CDB_LOG_FILE="/dev/full").start()
    assert all(JobClient(service.port).call("GET", LOOKUP)[0] == 200 for _ in range(20))
    assert JobClient(service.port).call("POST", "pt", {"name": "Full"})[0] == 200
