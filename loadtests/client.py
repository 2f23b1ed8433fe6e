"""Sequential calls over one connection, each timed by the client and, where the service says so, by the database."""

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
class Answer:
    """One answer; milliseconds. `database` is None where the header Server-Timing is missing."""

    status: int
    body: bytes
    wall: float
    database: float | None

    @property
    def rows(self) -> int:
        """How many rows a lookup returned. Raises `ValueError` unless it is a good answer."""
        if self.status != 200:
            raise ValueError(f"status {self.status}: {self.body[:200]!r}")
        return len(json.loads(self.body))


class Client:
    """Keeps its connection, and opens a new one where the service has closed it."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        """Ask a route of the API."""
        content = None if body is None else json.dumps(body).encode()
        try:
            return self._call(method, path, content)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # gunicorn closes connections that were quiet for some seconds; only reading may be asked twice.
            self._connection.close()
            if method != "GET":
                raise
            return self._call(method, path, content)

    def write(self, method: str, path: str, body: Any = None) -> Answer:
        """The same on a fresh connection, for what must not be sent twice. Raises `RuntimeError` unless it is 200."""
        self._connection.close()
        self._connection.connect()
        answer = self.call(method, path, body)
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: status {answer.status}: {answer.body[:300].decode(errors='replace')}")
        return answer

    def _call(self, method: str, path: str, content: bytes | None) -> Answer:
        headers = {"Content-Type": "application/json"} if content is not None else {}
        begin = time.perf_counter()
        self._connection.request(method, PREFIX + path, content, headers)
        response = self._connection.getresponse()
        text = response.read()
        wall = (time.perf_counter() - begin) * 1000
        return Answer(response.status, text, wall, database_time(response.getheader("Server-Timing")))


def database_time(header: str | None) -> float | None:
    """Milliseconds of `db` in a header such as `db;dur=1.234;desc="1 query", total;dur=2.3`; None where it is missing."""
    # Descriptions go first, because they may have commas.
    bare = re.sub(r'"[^"]*"', "", header or "")
    found = re.search(r"(?:^|,)\s*db\s*(?:;[^,]*)?;\s*dur=([\d.]+)", bare)
    return float(found[1]) if found else None


def moments(pattern: str, seed: int):
    """Endless moments of a pattern as a query: the same for the same seed."""
    source = random.Random(seed)
    while True:
        if pattern == "first":
            yield "majorIOV=0&minorIOV=0"
        elif pattern == "last":
            yield f"majorIOV={LARGEST}&minorIOV={LARGEST}"
        else:
            yield f"majorIOV={source.randint(0, LARGEST)}&minorIOV={source.randint(0, LARGEST)}"


def lookups(client: Client, path: str, pattern: str, *, calls: int, seconds: float, seed: int = 1) -> list[Answer]:
    """Lookups one after the other: at most `calls`, for at most about `seconds`, but three at least, after one that
    warms up and is left out."""
    answers: list[Answer] = []
    questions = moments(pattern, seed)
    client.call("GET", f"{path}&{next(questions)}")
    begin = time.perf_counter()
    while len(answers) < 3 or (len(answers) < calls and time.perf_counter() - begin < seconds):
        answers.append(client.call("GET", f"{path}&{next(questions)}"))
    return answers
