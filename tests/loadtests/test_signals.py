"""The signals of processes, PostgreSQL and /metrics, of a service under load."""

import contextlib
import http.server
import itertools
import os
import subprocess
import sys
import threading
import time

import psycopg2
import pytest

from loadtests import metrics, usage
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.signals.programs import Programs
from loadtests.signals.rates import Rates
from loadtests.signals.sampling import sampled
from loadtests.signals.sources import Counts, sessions

BURN = "import time\nend = time.process_time() + 0.25\nwhile time.process_time() < end: pass\n"
SECONDS = 5
# On one pytest worker, because the tests share the service.
pytestmark = pytest.mark.xdist_group("signals")
WORKERS = 2


@pytest.fixture(scope="module")
def stage(needs_packages, open_directory):
    stage = Stage(open_directory / "data", output=open_directory / "output")
    stage.data.mkdir()
    with stage.running_database(), stage.serving(scenarios=("tiny",), workers=WORKERS):
        yield stage


@pytest.fixture(scope="module")
def run(stage):
    options = {"global-tag": "tiny", "pause": 0.02}
    return stage.load("some load", Load({"ReconstructionJob": 1}, 8, seconds=SECONDS, options=options))


def most(run, name):
    return max(run.signals.column(name)[1], default=0.0)


def mean(run, name):
    values = run.signals.column(name)[1]
    return sum(values) / len(values)


def cpu(run, program):
    return mean(run, f"cpu.{program}")


def test_signals_have_row_for_each_second_without_negative_values(run):
    times = run.signals.column("time")[0]
    assert SECONDS <= len(times) <= 4 * SECONDS
    apart = [late - early for early, late in itertools.pairwise(times)]
    assert apart == pytest.approx([round(gap) for gap in apart])
    assert min(apart) >= 0.99
    assert all(value >= 0 for row in run.signals.rows for value in row.values())


def test_signals_show_cpu_of_busy_programs(run):
    assert cpu(run, "granian") > 0.05
    assert cpu(run, "generator") > 0.05
    assert cpu(run, "granian") > cpu(run, "gunicorn")
    for program in ("nginx", "postgres", "gunicorn"):
        assert 0 < cpu(run, program) < os.cpu_count()
    assert mean(run, "cpu.machine") >= cpu(run, "granian")


def test_signals_count_processes_by_program(run):
    assert most(run, "processes.granian") == WORKERS + 1
    assert most(run, "processes.generator") == 1
    assert most(run, "processes.compiler") == 1
    # At first there is another one, which tells that the service is ready.
    assert run.signals.column("processes.serve")[1][-1] == 1
    assert most(run, "processes.nginx") >= 3
    # PostgreSQL has a process for each connection, and its own processes.
    assert most(run, "processes.postgres") > most(run, "connections.idle")


@pytest.mark.parametrize("program", ["nginx", "granian", "gunicorn", "compiler", "postgres", "generator"])
def test_signals_have_memory_files_and_threads_of_program(run, program):
    assert 0.5e6 < most(run, f"memory.{program}") < 4e9
    assert most(run, f"files.{program}") > 3
    assert most(run, f"threads.{program}") >= most(run, f"processes.{program}")


def test_signals_have_connections_and_metrics(run):
    assert most(run, "connections.idle") + most(run, "connections.active") >= 2
    assert {"connections.active", "connections.idle_in_transaction", "waits.none"} <= set(run.signals.rows[1])
    assert most(run, "in_progress") >= 1  # the request for /metrics
    # In any row: at the last tick, a source may have come too late.
    assert {"errors.overloaded", "queue_ms", "disk.read"} <= set().union(*run.signals.rows)


def test_signal_rates_sum_to_count_of_client(run):
    lookups = int((run.recording.requests.names == "lookup").sum())
    for stage in ("reached", "started", "finished"):
        times, rates = run.signals.column(f"lookups.{stage}")
        # The first and last seconds are idle, so that few lookups are missed at the edges.
        assert sum(rates) * (times[-1] - times[0]) / (len(times) - 1) == pytest.approx(lookups, rel=0.35)
    assert metrics.total(run.counters, "cdb_lookups_finished_total") == lookups


def test_signals_show_sessions_that_wait_for_lock(stage):
    with (
        stage.database.connect(autocommit=False) as holder,
        contextlib.closing(psycopg2.connect(stage.database.url)) as other,
    ):
        holder.cursor().execute('LOCK TABLE "GlobalTag"')

        def wait():
            with contextlib.suppress(psycopg2.Error):
                other.cursor().execute('LOCK TABLE "GlobalTag"')

        waiting = threading.Thread(target=wait)
        waiting.start()
        try:
            seen, deadline = {}, time.monotonic() + 10
            while "waits.Lock:relation" not in seen and time.monotonic() < deadline:
                seen = sessions(stage.database.url)
        finally:
            holder.rollback()
            waiting.join()
    assert seen["waits.Lock:relation"] >= 1
    assert seen["connections.idle_in_transaction"] >= 1
    # PostgreSQL detects the closed connection of its client a little later.
    deadline = time.monotonic() + 10
    while (left := sessions(stage.database.url)["connections.idle_in_transaction"]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == 0


def test_signals_assign_busy_backend_to_postgres(stage):
    server = usage.postmaster(stage.data / "postgres" / "data").pid
    programs = Programs({os.getpid(): "harness", stage.service.process.pid: "serve", server: "postgres"})
    programs.read()
    begin = sampled_at = time.monotonic()
    stage.database.value("SELECT count(*) FROM generate_series(1, 2000000) AS number WHERE number % 7 = 0")
    computed = 0.0
    # The backend has ended before the next sample. Its CPU time counts after its parent has waited for it.
    while computed <= 0.05:
        assert time.monotonic() - begin < 60
        time.sleep(0.05)
        now = time.monotonic()
        computed += programs.read()["cpu.postgres"] * (now - sampled_at)
        sampled_at = now


def test_sessions_of_unreachable_server_are_an_error(stage):
    with pytest.raises(psycopg2.Error):
        sessions("postgresql://127.0.0.1:1/nothing")
    assert sessions(stage.database.url)["connections.active"] >= 0


def test_cpu_of_short_lived_backends_is_counted_once():
    burn = f"import subprocess, sys\nfor _ in range(4): subprocess.run([sys.executable, '-c', {BURN!r}])\n"
    script = f"{burn}print(flush=True)\ninput()"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    programs, seen, ended = Programs({process.pid: "postgres"}), 0.0, threading.Event()
    threading.Thread(target=lambda: (process.stdout.readline(), ended.set())).start()
    try:
        programs.read()
        while not ended.is_set():
            begin = time.monotonic()
            time.sleep(0.11)
            columns = programs.read()
            seen += columns["cpu.postgres"] * (time.monotonic() - begin)
    finally:
        process.stdin.close()
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
        process.stdout.close()
    assert used.ru_utime + used.ru_stime > 1.0
    # A little was used before the first sample and after the last one.
    assert seen == pytest.approx(used.ru_utime + used.ru_stime, abs=0.25)


def test_cpu_of_ended_command_is_not_that_of_the_service():
    """A process may start commands that compute for seconds."""
    script = (
        f"import subprocess, sys\ninput()\nsubprocess.run([sys.executable, '-c', {BURN!r}])\nprint(flush=True)\ninput()"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    programs = Programs({process.pid: "granian"})
    try:
        programs.read()
        begin = time.monotonic()
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        assert programs.read()["cpu.granian"] * (time.monotonic() - begin) < 0.2
    finally:
        process.kill()
        process.communicate()


def test_sampling_continues_without_unreachable_sources():
    with sampled("http://127.0.0.1:1", None, None) as seen:
        time.sleep(1.5)
    assert len(seen.rows) == 2
    assert "memory.harness" in seen.rows[1]
    assert not [
        name for row in seen.rows for name in row if name.startswith(("responses.", "connections.", "cpu.machine"))
    ]


def test_rates_of_new_and_restarted_counters_are_not_negative():
    rates = Rates()
    assert rates.of({"a": 5.0, "b": 9.0}) == {}
    time.sleep(0.01)
    found = rates.of({"a": 2.0, "b": 10.0, "c": 1.0})
    assert found["a"] == 0
    assert found["b"] == found["c"] > 0


def test_counts_of_restarted_service_are_not_negative(monkeypatch):
    told = [
        {'cdb_requests_total{method="GET",route="/x",status="200"}': 50.0},
        {
            'cdb_requests_total{method="GET",route="/x",status="200"}': 10.0,
            'cdb_requests_total{method="GET",route="/metrics",status="200"}': 5.0,
            'cdb_requests_total{method="GET",route="/x",status="504"}': 3.0,
        },
        {},
    ]
    monkeypatch.setattr(metrics, "read", lambda *_: told.pop(0))
    counts = Counts("http://nowhere")
    assert counts.read() == {}
    columns = counts.read()
    assert columns["responses.200"] == 0
    assert columns["responses.504"] > 0
    assert counts.read() == {}


@pytest.mark.parametrize("body", [b"<!doctype html><p>{Who} are you?</p>", b"\xff\xfe"])
def test_metrics_of_server_with_html_page_are_empty(body):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.handle_request).start()
        assert metrics.read(f"http://127.0.0.1:{server.server_port}") == {}


def test_difference_of_unread_metrics_is_empty():
    assert (
        metrics.difference({}, {"cdb_requests_total": 5.0}) == {} == metrics.difference({"cdb_requests_total": 5.0}, {})
    )
    assert metrics.difference({"a": 1.0}, {"a": 3.0, "b": 2.0}) == {"a": 2.0, "b": 2.0}
