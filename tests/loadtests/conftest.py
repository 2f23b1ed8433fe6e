"""A web server that counts for itself what the load generator says it asked."""

import shutil
import tempfile
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.e2e.service import Service
from tests.programs import require

BODY = b"[]"


class CountingServer(ThreadingHTTPServer):
    """Answers with the status that the path names, as in /404, and counts what it was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.paths = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    @property
    def statuses(self):
        return Counter(int(path[1:4]) for path in self.paths)

    def handle_error(self, *_):
        """The load generator drops its connections when its time is over."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.paths.append(self.path)
        head = f"HTTP/1.1 {self.path[1:4]} X\r\nContent-Length: {len(BODY)}\r\n\r\n"
        # In one piece, so that no delayed acknowledgement comes in between.
        self.wfile.write(head.encode() + BODY)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    require("wrk")
    with CountingServer() as counting:
        thread = threading.Thread(target=counting.serve_forever)
        thread.start()
        yield counting
        counting.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def needs_packages():
    """Skips where nginx or PgBouncer is missing."""
    require("nginx", "pgbouncer")


@pytest.fixture(scope="module")
def open_directory():
    """Outside of pytest's own, which each start of pytest closes to other accounts, nginx's and the database's among them."""
    directory = Path(tempfile.mkdtemp(prefix="cdb-load-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def load_service():
    """`manage.py run` with its example tag, for all tests of users and of the web UI."""
    # pytest's own directories are closed to other accounts, the database server's among them.
    directory = tempfile.TemporaryDirectory(prefix="cdb-load-", ignore_cleanup_errors=True)
    with directory as path, Service(Path(path) / "data").running() as service:
        yield service
