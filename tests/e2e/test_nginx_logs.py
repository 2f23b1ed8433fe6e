"""The logs of requests through nginx: their lines, request ids, and the client of a change."""

import json
import socket
import uuid

from tests.e2e.behind_nginx import PREFIX, ask
from tests.e2e.refused import request
from tests.e2e.service import JobClient, raw


def test_the_access_log_says_where_the_time_went(served, log):
    request_id = f"job-17.{uuid.uuid4().hex}"
    target = f'{PREFIX}globalTag/a"b\\?light'
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: {request_id}\r\n\r\n".encode())
        head = connection.recv(65536)
    assert f"X-Request-ID: {request_id}\r\n".encode() in head
    entry = log[request_id]
    assert (entry["client"], entry["method"], entry["uri"], entry["status"]) == ("127.0.0.1", "GET", target, 404)
    # Both are rounded, each from a clock of its own.
    assert entry["bytes"] > 0 and entry["request_time"] + 0.05 >= float(entry["upstream_response_time"]) >= 0
    assert float(entry["upstream_connect_time"]) >= 0 and float(entry["upstream_header_time"]) >= 0
    assert entry["time"] and entry["cache"] == "MISS"


def test_logs_and_configuration_are_for_their_owner_alone(served):
    ask(served, "GET", f"{PREFIX}globalTags")
    files = [file for file in (served.data / "serve").iterdir() if file.suffix in (".log", ".conf", ".ini")]
    assert {file.name for file in files} >= {"access.log", "error.log", "service.log", "nginx.conf"}
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in files} == {file.name: "0o600" for file in files}


def test_the_change_log_names_the_client_and_not_what_it_claims_to_be(served):
    tag = f"actor{uuid.uuid4().hex}"
    body = json.dumps({"name": tag, "status": "unlocked"}).encode()
    headers = b"Content-Type: application/json\r\nX-Forwarded-For: 10.1.2.3\r\nX-Forwarded-User: root\r\n"
    status, _, _ = raw(served.port, request(b"POST", b"gt", headers, body))
    assert status == 200
    [change] = JobClient(served.port).get(f"global-tags/{tag}/changes")["results"]
    assert change["actor"] == "127.0.0.1"
