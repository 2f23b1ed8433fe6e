"""Clients that read an export completely, slowly or not at all, and the database's view of them."""

import contextlib
import http.client
import time
from collections.abc import Callable, Iterator

import psycopg2

from cdb.embedded.server import EmbeddedPostgres
from tests.e2e.service import Service

TAG = "heavy-usage"
ROWS = 500_000
RUNNING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '/*request_id=%*/ COPY%' AND state = 'active'"
# What runs, waits, or idles inside a transaction.
BUSY = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE state <> 'idle' AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)
KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '/*request_id=%*/ COPY%' AND state = 'active'"


class Watcher:
    """A connection of its own to the database of a service."""

    def __init__(self, service: Service) -> None:
        self._connection = psycopg2.connect(EmbeddedPostgres(service.data / "postgres").url)
        self._connection.autocommit = True

    def value(self, query: str) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchone()[0]

    def is_free(self) -> bool:
        return self.value(BUSY) == 0

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def begun(port: int, query: str = "", *, tag: str = TAG) -> Iterator[http.client.HTTPResponse]:
    """An export of which some has been read; the client goes away with the block."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", f"/api/cdb_rest/global-tags/{tag}/export{query}")
        response = connection.getresponse()
        assert response.status == 200
        assert response.read(1000).startswith(b"payload_type,")
        yield response
    finally:
        # The response has a hold of the socket as well.
        response.close()
        connection.close()


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> float:
    """How long it took."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds
        time.sleep(0.02)
    return time.monotonic() - begin
