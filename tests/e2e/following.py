"""The log records of one request in a running service."""

import contextlib
import http.client
import json
import re
import time
from collections.abc import Callable
from typing import Any

import psycopg2

from tests.e2e.service import Service

PATIENCE_SECONDS = 30
COMMENT = re.compile(r"/\*request_id=([^*]+)\*/ (.*)")


class Logs:
    """The logs of a service, by request id: nginx's, the application's records and PostgreSQL's statements."""

    def __init__(self, service: Service) -> None:
        self._directory = service.data / "serve"
        self._server_log = service.data / "postgres" / "server.log"

    def nginx(self, request_id: str) -> list[dict[str, Any]]:
        return self._named(self._directory / "access.log", request_id)

    def records(self, request_id: str) -> list[dict[str, Any]]:
        return self._named(self._directory / "service.log", request_id)

    def all_records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self._directory / "service.log").read_text().splitlines()]

    def statements(self, request_id: str) -> list[str]:
        """Each with what its client calls itself, as PostgreSQL writes it."""
        lines = self._server_log.read_text().splitlines()
        return [line for line in lines if (found := COMMENT.search(line)) and found[1] == request_id]

    @staticmethod
    def _named(path: Any, request_id: str) -> list[dict[str, Any]]:
        lines = path.read_text().splitlines() if path.exists() else []
        return [
            entry for line in lines if request_id in line and (entry := json.loads(line))["request_id"] == request_id
        ]


def eventually(look: Callable[[], Any]) -> Any:
    """What `look` gives as soon as that is something: nginx writes its lines a second later, and records come last."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, look
        time.sleep(0.1)
    return found


def log_statements(service: Service) -> None:
    """Let PostgreSQL write down each statement, as `docs/problems.md#find-a-slow-request` tells operators to do."""
    url = f"postgresql://cdb@/cdb?host={service.data}/postgres/socket"
    with contextlib.closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("ALTER ROLE cdb SET log_min_duration_statement = 0")
        # New connections begin with it.
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'cdb' AND pid <> pg_backend_pid()"
        )


def ask(
    service: Service, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, str, http.client.HTTPMessage]:
    """Status, the one request id in the answer, and its headers."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    with contextlib.closing(connection):
        content = None if body is None else json.dumps(body).encode()
        more = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, content, more)
        response = connection.getresponse()
        response.read()
        [request_id] = response.headers.get_all("X-Request-ID")
        return response.status, request_id, response.headers
