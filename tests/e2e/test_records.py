"""Log records of a request that the database does not answer."""

import json
import signal

import psutil

from tests.e2e.faults import LOOKUP
from tests.e2e.following import eventually
from tests.e2e.service import JobClient, raw


def records_of(service, request_id):
    """What it wrote on standard error about a request."""
    records = [json.loads(line) for line in list(service.lines) if line.startswith("{")]
    return [record for record in records if record.get("request_id") == request_id]


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
            and any(record["logger"] == "cdb_rest.connections.postgresql" for record in records)
            and records
        )
    )
    assert [record["event"] for record in found].count("finished") == 1
    [warning] = [record for record in found if record["logger"] == "cdb_rest.connections.postgresql"]
    assert warning["level"] == "warning" and "did not respond in time" in warning["event"]


def test_a_disk_that_is_full(fresh):
    service = fresh(CDB_LOG_FILE="/dev/full").start()
    assert all(JobClient(service.port).call("GET", LOOKUP)[0] == 200 for _ in range(20))
    assert JobClient(service.port).call("POST", "pt", {"name": "Full"})[0] == 200
