"""Sequential lookups of the harness's client."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

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
            head = f"HTTP/1.1 {200 if known else 404} X\r\nContent-Length: {len(body)}\r\n\r\n"
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


def test_lookups_are_limited_by_number_and_time_with_minimum_of_three():
    with served({"payloadiovs/": [[1], [2]]}) as service, Client(service.host) as client:
        assert len(lookups(client, "x", calls=5, seconds=60)) == 5
        found = lookups(client, "x", calls=5, seconds=0)
        assert [response.rows for response in found] == [2] * 3
        with pytest.raises(ValueError, match="status 404"):
            _ = client.request("GET", "nothing").rows
