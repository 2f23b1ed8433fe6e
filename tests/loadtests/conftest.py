"""A web server that counts its requests, and fixtures of services for the load tests."""

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
    """Responds with the status that the path names, as in /404, and records the paths."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.paths = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    @property
    def statuses(self):
        return Counter(int(path[1:4]) for path in self.paths)

    def handle_error(self, *_):
        """Ignore errors: the load generator drops its connections at the end of its run."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.paths.append(self.path)
        head = f"HTTP/1.1 {self.path[1:4]} X\r\nContent-Length: {len(BODY)}\r\n\r\n"
        # In a single write, because two writes may wait for a delayed acknowledgement.
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
    """Skip the test if nginx is not installed."""
    require("nginx")


@pytest.fixture(scope="module")
def open_directory():
    """A directory that the accounts of nginx and PostgreSQL can read, unlike the directories of pytest."""
    directory = Path(tempfile.mkdtemp(prefix="cdb-load-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def load_service():
    """`manage.py run` with its example tag, for all tests of users and of the web UI."""
    # The account of PostgreSQL cannot read the directories of pytest.
    directory = tempfile.TemporaryDirectory(prefix="cdb-load-", ignore_cleanup_errors=True)
    with directory as path, Service(Path(path) / "data").running() as service:
        yield service
