"""/metrics of `make serve`, compared with the requests that a load has sent."""

import contextlib
import http.client
import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from cdb.env import ROOT
from cdb_rest.metrics.counts import FORMER_NAMES
from tests.e2e.counting import LOOKUP, Load, Metrics, eventually, workers
from tests.e2e.faults import locked
from tests.e2e.service import JobClient, Service, raw
from tests.programs import require

pytestmark = pytest.mark.usefixtures("needs_packages")
FUNNEL = ("cdb_lookups_received_total", "cdb_lookups_started_total", "cdb_lookups_finished_total")


@pytest.fixture(scope="module")
def three(new_directory, needs_packages):
    """A service with three processes for lookups."""
    running = Service(new_directory() / "data", "serve", CDB_WORKERS="3").start()
    directory = directory_of(running)
    yield running
    running.stop()
    assert not directory.exists()


def directory_of(service):
    """Where the service counts."""
    [process, *_] = workers(service, "lookups")
    [slots] = [Path(file.path) for file in process.open_files() if file.path.endswith("/slots")][:1]
    return slots.parent


def look(service):
    return Metrics(service.port)


def check(service, before, load):
    """Hold the counts since `before` against those of the load, exactly."""
    eventually(lambda: look(service).requests - before.requests, load.asked)
    after = look(service)
    received, started, finished = (after.sum(name) - before.sum(name) for name in FUNNEL)
    assert received == load.lookups and started == finished
    # A revalidation that has waited for a thread may use the state that another request has read.
    shared = after.sum("cdb_shared_states_total") - before.sum("cdb_shared_states_total")
    assert 0 <= received - started <= shared
    assert after.by("cdb_errors_total", "code") - before.by("cdb_errors_total", "code") == load.errors
    verdicts = [
        metrics.by("cdb_cacheable_responses_total", "route", "conditional", "result") for metrics in (before, after)
    ]
    assert (verdicts[1] - verdicts[0])[LOOKUP, "yes", "unchanged"] == load.asked[LOOKUP, "GET", "304"] > 0
    counted = [metrics.sum("cdb_request_duration_seconds_count", route=LOOKUP) for metrics in (before, after)]
    assert counted[1] - counted[0] == sum(n for (route, *_), n in load.asked.items() if route == LOOKUP)
    # The scrape itself. A slow one is answered by the other pool, while the first pool still works on it.
    eventually(lambda: look(service).sum("cdb_requests_in_progress"), 1)
    return after


def test_the_counts_are_those_of_the_load(three):
    # A service is ready as soon as one of its workers is.
    eventually(lambda: look(three).sum("cdb_threads", pool="lookups"), 12)
    before = look(three)
    assert before.sum("cdb_processes", pool="lookups") == 4
    load = Load(three.port)
    load.run(40)
    assert sum(load.told.values()) == 8 * (120 + 24)
    check(three, before, load)


def test_a_killed_process_loses_no_count_and_leaves_no_request_in_progress(three):
    load = Load(three.port)
    load.run(20)
    eventually(lambda: look(three).sum("cdb_requests_in_progress", pool="lookups"), 0)
    before = look(three)
    for process in workers(three, "lookups"):
        process.kill()
    eventually(lambda: look(three).sum("cdb_threads", pool="lookups"), 12)
    assert look(three).requests == before.requests
    load = Load(three.port)
    load.run(20)
    check(three, before, load)


def test_requests_of_a_killed_process_are_no_longer_in_progress(three):
    with locked(three, "PayloadType") as holder, ThreadPoolExecutor(3) as pool:
        writes = [pool.submit(JobClient(three.port).call, "POST", "pt", {"name": f"Kept{n}"}) for n in range(3)]
        # The three writes and the scrape itself, which the other pool answers if it is slow.
        eventually(lambda: look(three).sum("cdb_requests_in_progress"), 4)
        for process in workers(three, "others"):
            process.kill()
        assert {write.result()[0] for write in writes} == {504}
        eventually(lambda: look(three).sum("cdb_requests_in_progress"), 1)
        holder.rollback()


def test_a_process_that_is_killed_under_load_loses_no_more_than_it_was_at_work_on(three):
    before, load = look(three), Load(three.port)
    load.run(60, lambda: (time.sleep(0.3), [process.kill() for process in workers(three, "lookups")]))
    eventually(lambda: look(three).sum("cdb_requests_in_progress", pool="lookups"), 0)
    eventually(lambda: look(three).sum("cdb_threads", pool="lookups"), 12)
    counted = sum((look(three).requests - before.requests).values())
    # nginx asks again for what a killed thread had, so that may be counted twice or not at all.
    assert abs(counted - sum(load.asked.values())) <= 3 * 4
    assert all(number >= 0 for number in (look(three).requests - before.requests).values())


def test_renewing_all_processes_under_load_counts_each_request_once(three):
    for _ in range(2):
        before, load = look(three), Load(three.port)
        lines = three.lines.count("Reloaded: the new processes respond.")

        def renew(lines=lines):
            three.process.send_signal(signal.SIGHUP)
            eventually(lambda: three.lines.count("Reloaded: the new processes respond."), lines + 1, 60)

        load.run(50, renew)
        check(three, before, load)
        eventually(lambda: look(three).sum("cdb_processes"), 7)
        # Old and new ones at a time, a file of each kind, and the locks.
        assert len(list(directory_of(three).iterdir())) <= 2 * 7 * 5 + 1


def test_the_text_is_as_prometheus_wants_it(three):
    JobClient(three.port).get("gt?page=1")
    metrics = look(three)
    assert all(family.documentation for family in metrics.families)
    # Each series once.
    series = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in metrics.samples]
    assert len(series) == len(set(series))
    for name in ("database", "pgbouncer", "nginx"):
        assert metrics.sum(f"cdb_{name}_up") == 1
    require("promtool")
    checked = subprocess.run(["promtool", "check", "metrics"], input=metrics.text, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def asked_from(service, address, path):
    """Status, headers and text of the response to a client at that address of this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20, source_address=(address, 0))
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def test_public_addresses_get_no_metrics(three):
    status, headers, text = asked_from(three, "127.0.0.2", "/metrics")
    assert status == 200 and "cdb_database_up 1.0" in text
    assert headers["Cache-Control"] == "no-store" and "CDB-Cache" not in headers
    assert asked_from(three, "127.0.0.1", "/nginx-status")[0] == 200
    assert asked_from(three, "127.0.0.2", "/nginx-status")[0] == 404
    # No client on this machine has a public address, so 127.0.0.2 stands for one.
    configuration = three.data / "serve" / "nginx.conf"
    text = configuration.read_text()
    [nginx] = three.programs("nginx: master")
    try:
        configuration.write_text(text.replace("allow 127.0.0.0/8;", "allow 127.0.0.1;"))
        old = nginx.children()
        nginx.send_signal(signal.SIGHUP)
        # The old processes accept connections until they end.
        psutil.wait_procs(old, 30)
        assert asked_from(three, "127.0.0.2", "/metrics")[0] == 404
        for spelling in ("/metrics", "/metrics/", "/metrics//", "/metrics%2F", "/%6Detrics"):
            status, _, text_of_it = asked_from(three, "127.0.0.2", spelling)
            assert status == 404 and json.loads(text_of_it)["code"] == "route_not_found", spelling
        assert asked_from(three, "127.0.0.1", "/metrics")[0] == 200
    finally:
        configuration.write_text(text)
        nginx.send_signal(signal.SIGHUP)


@pytest.mark.parametrize("pool", ["lookups", "others"])
def test_it_answers_in_time_while_one_instance_is_stopped(three, pool):
    with contextlib.ExitStack() as stack:
        for process in workers(three, pool):
            process.suspend()
            stack.callback(process.resume)
        begin = time.monotonic()
        assert look(three).sum("cdb_processes", pool="others") == 3
        assert time.monotonic() - begin < 15


def test_it_answers_in_time_while_the_database_and_the_pooler_are_stopped(three):
    before = look(three)
    load = Load(three.port)
    load.run(1)
    eventually(lambda: look(three).requests - before.requests, load.asked)
    with contextlib.ExitStack() as stack:
        for process in [*three.programs("pgbouncer"), *three.programs("postgres")]:
            process.suspend()
            stack.callback(process.resume)
        begin = time.monotonic()
        found = look(three)
        assert time.monotonic() - begin < 15
        ups = [found.sum(f"cdb_{name}_up") for name in ("database", "pgbouncer", "nginx")]
        assert ups == [0, 0, 1] and found.requests == before.requests + load.asked
    eventually(lambda: [look(three).sum(f"cdb_{name}_up") for name in ("database", "pgbouncer")], [1, 1])


def rows_of_the_manual():
    """The rows of the tables of present and of former names, as cells."""
    return [
        [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| `")]
        for table in (ROOT / "docs" / "metrics.md").read_text().split("## Former names")
    ]


def test_the_manual_has_all_of_it_and_nothing_else(three):
    Load(three.port).run(1)
    JobClient(three.port).call("POST", "cloneGlobalTag/tiny/counted", None)
    described = {name: set(filter(None, labels.split(", "))) for name, labels, _ in rows_of_the_manual()[0]}
    # Without a replica and without a truncated response these have no samples, or do not exist.
    optional = (
        "cdb_standbys",
        "cdb_standby_lag_seconds",
        "cdb_standby_lag_bytes",
        "cdb_responses_aborted_total",
        "cdb_replica_up",
        "cdb_replica_lag_seconds",
        "cdb_replica_reads_total",
    )

    def exported():
        found = {}
        for family in look(three).families:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            found[name] = {label for sample in family.samples for label in sample.labels} - {"le"}
        for former, _ in FORMER_NAMES.values():
            found.pop(f"{former}_total", None)
        return found | {name: described[name] for name in optional if not found.get(name)}

    # A scrape leaves out what does not respond in time.
    eventually(exported, described)


def test_renamed_metrics_have_their_former_names_too(three):
    Load(three.port).run(1)
    metrics = look(three)
    for name, (former, labels) in FORMER_NAMES.items():
        samples = [sample for sample in metrics.samples if sample.name == f"{name}_total"]
        assert samples or name == "cdb_responses_aborted", name
        for sample in samples:
            renamed = {labels.get(label, label): value for label, value in sample.labels.items()}
            same = [one for one in metrics.samples if (one.name, one.labels) == (f"{former}_total", renamed)]
            assert [one.value for one in same] == [sample.value]
    described = {
        (name.removesuffix("_total"), former.removesuffix("_total"), labels)
        for name, former, labels in rows_of_the_manual()[1]
    }
    assert described == {
        (name, former, ", ".join(f"{new} ({old})" for new, old in labels.items()))
        for name, (former, labels) in FORMER_NAMES.items()
    }


def test_other_names_of_this_machine_may_be_asked_too(three):
    assert raw(three.port, b"GET /metrics HTTP/1.1\r\nHost: db1.example.org\r\nConnection: close\r\n\r\n")[0] == 200
