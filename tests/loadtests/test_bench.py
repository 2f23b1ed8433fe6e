"""`make bench`: whole parts, at the smallest size, and the measuring loop."""

import subprocess
import sys
import tempfile
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas
import pytest

from cdb.env import ROOT
from loadtests import wrk
from tests.programs import needs

BODY = b"[]"


class Counting(BaseHTTPRequestHandler):
    """Responds with the status that the path names, as in /404, and counts."""

    protocol_version = "HTTP/1.1"
    statuses: Counter = Counter()

    def do_GET(self):
        status = self.path.split("/")[-1][:3]
        self.statuses[int(status)] += 1
        # In a single write, because two writes may wait for a delayed acknowledgement.
        self.wfile.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY)

    def log_message(self, *_):
        pass


@needs("wrk")
@pytest.mark.parametrize("status", [200, 404])
def test_the_loop_counts_what_the_server_counts(status):
    Counting.statuses.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Counting) as server:
        server.daemon_threads, server.handle_error = True, lambda *_: None
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/api/cdb_rest/{status}?x=1"
        found = wrk.measure(url, seconds=1, connections=2)
        server.shutdown()
    # When the time is over, each connection may have a request in progress.
    assert 0 <= Counting.statuses[status] - found["requests"] <= 2
    assert found["requests"] > 50 and found["errors"] == (0 if status == 200 else found["requests"])
    assert found["statuses"].get(404, 0) == (0 if status == 200 else found["requests"])
    assert found["rate"] > 0 and 0 < found["p50"] <= found["p99"] <= found["max"]


@needs("nginx")
def test_parts_are_measured_and_reported():
    with tempfile.TemporaryDirectory(prefix="cdb-bench-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        directory.chmod(0o755)
        words = ["--quick", "--only", "reads", "--scenario", "tiny", "--directory", directory]
        command = [sys.executable, "-m", "loadtests.bench", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr
        [report] = directory.glob("*/report.html")
        figures = pandas.read_csv(report.with_name("figures.csv"))
    assert set(figures["part"]) == {"reads"}
    assert (figures["service_cpu_ms"] > 0).all()
    assert (figures["ratio"] > 0).all() and "÷ lookup" in done.stdout
