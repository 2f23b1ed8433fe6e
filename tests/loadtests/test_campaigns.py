"""Campaigns: their files, their judgement, and whole runs against a service."""

import json
import socketserver
import subprocess
import sys
import threading
import time

import pandas
import pytest

from cdb.env import ROOT
from loadtests import campaign, locusts, recording
from tests.programs import needs

FILES = sorted(campaign.DIRECTORY.glob("*.toml"))


def run(*words, directory):
    command = [sys.executable, "-m", "loadtests", *words, "--directory", directory]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_campaign_can_be_read_and_asks_a_question(file):
    for quick in (False, True):
        found = campaign.load(file, quick=quick)
        assert found.question.endswith("?") and found.scenarios
        columns = {"step", "repetition", *found.steps[0].point, *campaign.HOLDS, "p50"}
        assert set(found.plot.values()) <= columns


def recorded(*rows):
    """A recording of requests: outcome, due, end."""
    frame = pandas.DataFrame(
        [(due, due, end, "Reader", "lookup", method, 200, outcome, 10, 99, "") for outcome, due, end, method in rows],
        columns=recording.Request._fields,
    )
    return frame.assign(ms=(frame["end"] - frame["due"]) * 1000)


def test_figures_are_those_of_the_requests_and_a_step_fails_for_each_reason():
    rows = [(recording.OK, second / 10, second / 10 + 0.5, method) for second in range(96) for method in ("GET", "JOB")]
    rows += [(recording.REFUSED, 9.6, 9.7, "GET"), (recording.NOT_SENT, 9.9, 9.9, "JOB")]
    found = campaign.figures(recorded(*rows), pandas.DataFrame({"time": [1.0, 2.0], "cpu.granian": [1.0, 0.5]}))
    assert found["requests"] == 97 and found["rate"] == pytest.approx(96 / 10)
    assert found["success"] == pytest.approx(100 * 96 / 98) and found["p95"] == pytest.approx(500)
    assert (found["504"], found["not sent"], found["rows"], found["cpu.granian"]) == (1, 1, 10, 0.75)

    def failures(figures=found, **hold):
        return campaign.failures(campaign.Step("", {}, {}, {}, hold), figures)

    assert failures() == [] == failures(success=97, p95=501, rows=10)
    assert failures(success=99) == ["success is 98, not at least 99"]
    assert failures(p95=400, rows=11) == ["p95 is 500, not at most 400", "rows is 10, not at least 11"]
    wrong = campaign.figures(recorded((recording.WRONG, 0, 1, "GET")), pandas.DataFrame())
    assert failures(wrong) == ["wrong response: 1"]


@pytest.mark.xdist_group("campaigns")
@needs("nginx")
def test_a_campaign_runs_and_writes_a_report(tmp_path, open_directory):
    done = run("smoke", "--quick", directory=open_directory)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 steps passed, with --quick" in done.stdout
    [report] = open_directory.glob("smoke-*/report.html")
    assert report.read_text().count("<img") >= 1
    figures = pandas.read_csv(report.with_name("figures.csv"))
    assert len(figures) == 1 and (figures["success"] > 50).all() and (figures["cpu.granian"] > 0).all()


@pytest.fixture
def open_directory():
    """A directory that the account of PostgreSQL can read, unlike those of pytest."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="cdb-load-", ignore_cleanup_errors=True) as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["smoke", "--host", "http://127.0.0.1:9"], "load: cannot connect to http://127.0.0.1:9: "),
        (["nothing"], "load: there is no campaign nothing: the campaigns are endurance, faults, "),
    ],
)
def test_what_cannot_be_run_is_one_line(tmp_path, words, message):
    done = run(*words, directory=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith(message) and done.stderr.count("\n") == 1


class Stalling(socketserver.BaseRequestHandler):
    """Answers a list of tags; requests that arrive in the second second wait until its end."""

    begin = 0.0

    def handle(self):
        self.request.recv(65536)
        Stalling.begin = Stalling.begin or time.monotonic()
        passed = time.monotonic() - Stalling.begin
        time.sleep(max(0.0, 2 - passed) if passed >= 1 else 0)
        body = json.dumps([{"name": "tiny"}]).encode()
        self.request.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)
        )


def test_jobs_at_a_rate_start_while_the_service_stalls(tmp_path):
    """A closed loop would have only one slow request; at 20 jobs per second, each job of the stall is late."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Stalling) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = {"users": 1, "start-jobs": "at a constant rate", "jobs-per-second": 20, "jobs-per-user": 60}
        options |= {"route": "globalTags", "scenario": "tiny"}
        host = f"http://127.0.0.1:{server.server_address[1]}"
        found = locusts.run(host, {"SingleRequest": 1}, options, tmp_path)
        server.shutdown()
    assert set(found["outcome"]) == {recording.OK}
    sent = found[found["method"] == "GET"]
    # Due in the first 0.7 s of the stall; on a busy machine, others wait, too.
    assert len(sent) == 60 and (sent["ms"] > 300).sum() >= 12
    assert sent["due"].diff().median() == pytest.approx(0.05, abs=0.001)
