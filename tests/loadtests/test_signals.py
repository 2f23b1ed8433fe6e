"""What is seen of processes, PostgreSQL and the service, against a real service under real load."""

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
from loadtests.signals.sampling import sampled
from loadtests.signals.sources import Connections, Counts

BURN = "import time\nend = time.process_time() + 0.25\nwhile time.process_time() < end: pass\n"
SECONDS = 5
# On one worker of pytest, which has the service.
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
    return mean(run, f"cpu.{program}.user") + mean(run, f"cpu.{program}.system")


def test_there_is_a_row_for_each_second_and_nothing_is_negative(run):
    times = run.signals.column("time")[0]
    assert SECONDS <= len(times) <= 4 * SECONDS
    apart = [late - early for early, late in itertools.pairwise(times)]
    assert apart == pytest.approx([round(gap) for gap in apart])
    assert min(apart) >= 0.99
    assert all(value >= 0 for row in run.signals.rows for value in row.values())


def test_the_programs_that_work_are_seen_at_work(run):
    assert cpu(run, "gunicorn-lookups") > 0.05
    assert cpu(run, "generator") > 0.05
    assert cpu(run, "gunicorn-lookups") > cpu(run, "gunicorn-others")
    for program in ("nginx", "postgres", "pgbouncer"):
        assert 0 < cpu(run, program) < os.cpu_count()
    assert mean(run, "cpu.machine") >= cpu(run, "gunicorn-lookups")


def test_processes_are_told_apart_and_counted(run):
    assert most(run, "processes.gunicorn-lookups") == WORKERS + 1
    assert most(run, "processes.generator") == 1
    assert most(run, "processes.pgbouncer") == most(run, "processes.serve") == 1
    assert most(run, "processes.nginx") >= 3
    # Of PostgreSQL there is a process for each connection beside its own.
    assert most(run, "processes.postgres") > most(run, "connections.idle")


@pytest.mark.parametrize(
    "program", ["nginx", "gunicorn-lookups", "gunicorn-others", "pgbouncer", "postgres", "generator"]
)
def test_memory_descriptors_and_threads_of_a_program(run, program):
    assert 0.5e6 < most(run, f"memory.{program}") < 4e9
    assert most(run, f"files.{program}") > 3
    assert most(run, f"threads.{program}") >= most(run, f"processes.{program}")


def test_postgres_and_the_service_tell_what_they_do(run):
    assert most(run, "connections.idle") + most(run, "connections.active") >= 2
    assert {"connections.active", "connections.idle_in_transaction", "waits.none"} <= set(run.signals.rows[1])
    assert most(run, "in_progress.others") >= 1  # the question itself
    assert most(run, "in_progress.lookups") <= most(run, "thread_limit.lookups") == 4 * WORKERS
    assert {"errors.overloaded", "refusals.lookups", "pgbouncer.clients.waiting", "disk.read"} <= set(
        run.signals.rows[-1]
    )


def test_rates_add_up_to_what_the_client_counted(run):
    lookups = int((run.recording.requests.names == "lookup").sum())
    for stage in ("reached", "started", "finished"):
        times, rates = run.signals.column(f"lookups.{stage}")
        # The first seconds and the last ones are idle, so that little is lost at the edges.
        assert sum(rates) * (times[-1] - times[0]) / (len(times) - 1) == pytest.approx(lookups, rel=0.35)
    assert metrics.total(run.counters, "cdb_lookups_finished_total") == lookups


def test_who_waits_for_a_lock_is_seen(stage):
    watching = Connections(stage.database.url)
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
                seen = watching.read()
        finally:
            holder.rollback()
            waiting.join()
    assert seen["waits.Lock:relation"] >= 1
    assert seen["connections.idle_in_transaction"] >= 1
    # The server notices a little later that its client has gone.
    deadline = time.monotonic() + 10
    while (left := watching.read()["connections.idle_in_transaction"]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == 0
    watching.close()


def test_a_backend_that_computes_is_postgres(stage):
    server = usage.postmaster(stage.data / "postgres" / "data").pid
    programs = Programs({os.getpid(): "rig", stage.own.process.pid: "serve", server: "postgres"})
    programs.read()
    begin = looked = time.monotonic()
    stage.database.value("SELECT count(*) FROM generate_series(1, 2000000) AS number WHERE number % 7 = 0")
    computed = 0.0
    # The connection has gone when we look again. Its time counts once its parent has heard of its end.
    while computed <= 0.05:
        assert time.monotonic() - begin < 60
        time.sleep(0.05)
        now = time.monotonic()
        computed += programs.read()["cpu.postgres.user"] * (now - looked)
        looked = now


def test_a_connection_that_was_ended_is_opened_again(stage):
    watching = Connections(stage.database.url)
    watching.read()
    stage.database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cdb-load'")
    with pytest.raises(psycopg2.Error):
        watching.read()
    assert watching.read()["connections.active"] >= 0
    watching.close()


def test_the_time_of_processes_that_come_and_go_is_counted_once():
    burn = f"import subprocess, sys\nfor _ in range(4): subprocess.run([sys.executable, '-c', {BURN!r}])\n"
    script = f"{burn}print(flush=True)\ninput()"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    programs, seen, ended = Programs({process.pid: "burner"}), 0.0, threading.Event()
    threading.Thread(target=lambda: (process.stdout.readline(), ended.set())).start()
    try:
        programs.read()
        while not ended.is_set():
            begin = time.monotonic()
            time.sleep(0.11)
            columns = programs.read()
            seen += (columns["cpu.burner.user"] + columns["cpu.burner.system"]) * (time.monotonic() - begin)
    finally:
        process.stdin.close()
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
        process.stdout.close()
    assert used.ru_utime + used.ru_stime > 1.0
    # Before the first look and after the last one there was a little.
    assert seen == pytest.approx(used.ru_utime + used.ru_stime, abs=0.25)


def test_what_is_away_is_left_out_and_ends_nothing():
    with sampled("http://127.0.0.1:1", None, None) as seen:
        time.sleep(1.5)
    assert len(seen.rows) == 2
    assert "memory.rig" in seen.rows[1]
    assert not [
        name for row in seen.rows for name in row if name.startswith(("answers.", "connections.", "cpu.machine"))
    ]


def test_counters_of_a_service_that_was_started_again(monkeypatch):
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
    assert columns["answers.200"] == 0
    assert columns["answers.504"] > 0
    assert counts.read() == {}


@pytest.mark.parametrize("body", [b"<!doctype html><p>{Who} are you?</p>", b"\xff\xfe"])
def test_a_page_in_place_of_the_metrics_tells_nothing(body):
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


def test_of_counts_that_were_not_read_at_both_ends_no_rise_is_known():
    assert (
        metrics.difference({}, {"cdb_requests_total": 5.0}) == {} == metrics.difference({"cdb_requests_total": 5.0}, {})
    )
    assert metrics.difference({"a": 1.0}, {"a": 3.0, "b": 2.0}) == {"a": 2.0, "b": 2.0}
