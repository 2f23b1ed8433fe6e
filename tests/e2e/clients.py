"""Clients of services in tests: malformed requests, cookies, requests through nginx with their lines in its log."""

import http.client
import json
import re
import time
from urllib.parse import urlencode

BYTES_PREFIX = b"/api/cdb_rest/"


def request(method, path, headers=b"", body=b""):
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return b"%s %s%s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n%s" % (method, BYTES_PREFIX, path, headers, length, body)


REFUSED = [
    (b"nonsense\r\n\r\n", 400),
    (b"GET / HTTP/9.9\r\n\r\n", 400),
    (b"get / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: nonsense\r\n\r\n", 400),
    (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20000 + b"\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 400),
    (request(b"GET", b"globalTag/%ff%fe"), 404),
    (request(b"GET", b"globalTag/%00"), 400),
    (request(b"BREW", b"globalTags"), 405),
    (request(b"GET", b"nothing", b"SCRIPT_NAME: /foo\r\n"), 404),
]


class Browser:
    """Keeps cookies, as a browser does, and follows no redirects."""

    def __init__(self, port, secure=None, host="localhost"):
        self.port, self.secure, self.host = port, secure, host
        self.cookies = {}
        self.set = []

    def __call__(self, method, path, form=None, **headers):
        kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
        connection = kind("127.0.0.1", self.port, timeout=60, **({"context": self.secure} if self.secure else {}))
        headers["Host"] = f"{self.host}:{self.port}"
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, urlencode(form) if form is not None else None, headers)
        response = connection.getresponse()
        self.set = response.headers.get_all("Set-Cookie") or []
        for cookie in self.set:
            name, _, value = cookie.split(";")[0].partition("=")
            self.cookies[name] = value
        body = response.read()
        connection.close()
        return response.status, response.headers, body

    def log_in(self, password, **headers):
        _, _, page = self("GET", "/admin/login/")
        token = re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', page)[1].decode()
        form = {"username": "operator", "password": password, "csrfmiddlewaretoken": token, "next": "/admin/"}
        return self("POST", "/admin/login/?next=/admin/", form, **headers)


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
