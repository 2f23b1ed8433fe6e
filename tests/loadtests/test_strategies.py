"""Data that the bench reads from a service: routes of strategies, rows and database times."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from loadtests.bench.parts.strategies import OWN, routes
from loadtests.client import Client, lookups


@contextlib.contextmanager
def served(responses):
    """A service with these responses by route; other routes get the same 404 as from cdb."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            route = self.path.removeprefix("/api/cdb_rest/").split("?")[0]
            known = route in responses
            body = json.dumps(responses[route] if known else {"detail": "…", "code": "route_not_found"}).encode()
            timing = 'Server-Timing: db;dur=1.5;desc="1 query", total;dur=2.0\r\n'
            head = f"HTTP/1.1 {200 if known else 404} X\r\n{timing}Content-Length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield SimpleNamespace(host=f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()


def test_routes_have_all_listed_strategies():
    listed = [{"name": "sql_lateral", "meaning": "…"}, {"name": "sql_group", "meaning": "…"}]
    with served({"payloadiovs_strategies/": listed}) as service:
        assert routes(service) == {
            OWN: "payloadiovs/", "sql_lateral": "payloadiovs_sql_lateral/", "sql_group": "payloadiovs_sql_group/",
        }  # fmt: skip


def test_lookups_are_limited_by_number_and_time_with_minimum_of_three():
    with served({"payloadiovs/": [[1], [2]]}) as service, Client(service.host) as client:
        assert len(lookups(client, "x", "random", calls=5, seconds=60)) == 5
        found = lookups(client, "x", "random", calls=5, seconds=0)
        assert [(response.rows, response.database) for response in found] == [(2, 1.5)] * 3
        with pytest.raises(ValueError, match="status 404"):
            _ = client.request("GET", "nothing").rows
