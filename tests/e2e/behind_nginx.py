"""Requests through nginx, and their lines in its access log."""

import http.client
import json
import time

PREFIX = "/api/cdb_rest/"


class AccessLog:
    """The lines of nginx's access log, by request id."""

    def __init__(self, service):
        self._path = service.data / "serve" / "access.log"

    def __getitem__(self, request_id):
        # Lines are written a second later.
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for line in reversed(self._path.read_text(errors="backslashreplace").splitlines()):
                if request_id in line and (entry := json.loads(line))["request_id"] == request_id:
                    return entry
            time.sleep(0.1)
        raise AssertionError(f"no line about {request_id}")

    def pools(self, request_ids):
        """Which pool got each of these requests; nginx's processes write their lines each for itself."""
        deadline = time.monotonic() + 30
        while True:
            entries = [json.loads(line) for line in self._path.read_text(errors="backslashreplace").splitlines()]
            found = {entry["request_id"]: entry["pool"] for entry in entries if entry["request_id"] in request_ids}
            if len(found) == len(request_ids):
                return found
            assert time.monotonic() < deadline, "lines are missing"
            time.sleep(0.2)


def ask(service, method, target, **headers):
    """Status, headers, parsed body of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    connection.request(method, target, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, response.headers, json.loads(body) if body else None
