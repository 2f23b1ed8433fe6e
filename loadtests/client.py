"""A sequential HTTP client that measures the time of each call and reads the database time from Server-Timing."""

import http.client
import json
import random
import re
import time
from dataclasses import dataclass
from typing import Any

from loadtests.service import PREFIX

TIMEOUT_SECONDS = 1800
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Response:
    """One response with its total and database time in milliseconds.

    `database` is None without a Server-Timing header.
    """

    status: int
    body: bytes
    wall: float
    database: float | None

    @property
    def rows(self) -> int:
        """The number of rows of a lookup. Raises `ValueError` unless the status is 200 and the body is JSON."""
        if self.status != 200:
            raise ValueError(f"status {self.status}: {self.body[:200]!r}")
        return len(json.loads(self.body))


class Client:
    """A client with one persistent connection, which is opened again when the service has closed it."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def call(self, method: str, path: str, body: Any = None) -> Response:
        """Send a request to a route of the API."""
        content = None if body is None else json.dumps(body).encode()
        try:
            return self._call(method, path, content)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # gunicorn closes connections that are idle for some seconds. Only GET may be sent twice.
            self._connection.close()
            if method != "GET":
                raise
            return self._call(method, path, content)

    def write(self, method: str, path: str, body: Any = None) -> Response:
        """Send a write over a new connection, so that it is never sent twice.

        Raises `RuntimeError` unless the status is 200.
        """
        self._connection.close()
        self._connection.connect()
        response = self.call(method, path, body)
        if response.status != 200:
            text = response.body[:300].decode(errors="replace")
            raise RuntimeError(f"{method} {path}: status {response.status}: {text}")
        return response

    def _call(self, method: str, path: str, content: bytes | None) -> Response:
        headers = {"Content-Type": "application/json"} if content is not None else {}
        begin = time.perf_counter()
        self._connection.request(method, PREFIX + path, content, headers)
        response = self._connection.getresponse()
        text = response.read()
        wall = (time.perf_counter() - begin) * 1000
        return Response(response.status, text, wall, database_time(response.getheader("Server-Timing")))


def database_time(header: str | None) -> float | None:
    """The milliseconds of `db` in a header such as `db;dur=1.234;desc="1 query", total;dur=2.3`.

    None if it is missing.
    """
    # Descriptions are removed first, because they may contain commas.
    bare = re.sub(r'"[^"]*"', "", header or "")
    found = re.search(r"(?:^|,)\s*db\s*(?:;[^,]*)?;\s*dur=([\d.]+)", bare)
    return float(found[1]) if found else None


def moments(pattern: str, seed: int):
    """An endless series of moments of a pattern, as query strings; the same seed gives the same series."""
    source = random.Random(seed)
    while True:
        if pattern == "first":
            yield "majorIOV=0&minorIOV=0"
        elif pattern == "last":
            yield f"majorIOV={LARGEST}&minorIOV={LARGEST}"
        else:
            yield f"majorIOV={source.randint(0, LARGEST)}&minorIOV={source.randint(0, LARGEST)}"


def lookups(client: Client, path: str, pattern: str, *, calls: int, seconds: float, seed: int = 1) -> list[Response]:
    """Send sequential lookups: at most `calls`, for about `seconds` at most, but at least three.

    One more lookup before them warms up and is not in the result.
    """
    responses: list[Response] = []
    queries = moments(pattern, seed)
    client.call("GET", f"{path}&{next(queries)}")
    begin = time.perf_counter()
    while len(responses) < 3 or (len(responses) < calls and time.perf_counter() - begin < seconds):
        responses.append(client.call("GET", f"{path}&{next(queries)}"))
    return responses
