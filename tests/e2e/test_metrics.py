"""/metrics of `make serve`, compared with the requests that a load has sent."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.counting import LOOKUP, Load, Metrics, eventually, workers
from tests.e2e.faults import locked
from tests.e2e.service import JobClient, Service

FUNNEL = ("cdb_lookups_received_total", "cdb_lookups_started_total", "cdb_lookups_finished_total")


@pytest.fixture(scope="module")
def counting(new_directory, needs_packages):
    with Service(new_directory() / "data", "serve", CDB_WORKERS="2").running() as running:
        yield running


def look(service):
    return Metrics(service.port)


def check(service, before, load):
    """Compare the counts since `before` with those of the load, exactly."""
    eventually(lambda: look(service).requests - before.requests, load.asked)
    after = look(service)
    received, started, finished = (after.sum(name) - before.sum(name) for name in FUNNEL)
    assert received == load.lookups and started == finished and 0 <= started <= received
    assert after.by("cdb_errors_total", "code") - before.by("cdb_errors_total", "code") == load.errors
    counted = [metrics.sum("cdb_request_duration_seconds_count", route=LOOKUP) for metrics in (before, after)]
    assert counted[1] - counted[0] == sum(n for (route, *_), n in load.asked.items() if route == LOOKUP)


def test_the_counts_are_those_of_the_load_also_after_processes_were_killed(counting):
    for is_killed in (False, True):
        if is_killed:
            for process in workers(counting, "granian"):
                process.kill()
            eventually(lambda: len(workers(counting, "granian")) >= 2, True)
            eventually(lambda: JobClient(counting.port).call("GET", "globalTags")[0], 200)
        before, load = look(counting), Load(counting.port)
        load.run(20)
        check(counting, before, load)


def test_requests_of_a_killed_process_are_no_longer_in_progress(counting):
    eventually(lambda: look(counting).sum("cdb_requests_in_progress"), 1)
    with locked(counting, "PayloadList") as holder, ThreadPoolExecutor(3) as pool:
        reads = [pool.submit(JobClient(counting.port).call, "GET", "pl?page=1") for _ in range(3)]
        # The reads and the scrape itself.
        eventually(lambda: look(counting).sum("cdb_requests_in_progress") >= 2, True)
        for process in workers(counting, "gunicorn"):
            process.kill()
        eventually(lambda: len(workers(counting, "gunicorn")) >= 2, True)
        holder.rollback()
        assert {read.result()[0] for read in reads} <= {200, 504}
    eventually(lambda: look(counting).sum("cdb_requests_in_progress"), 1)


def test_the_figures_of_tags_and_of_the_database_are_there(counting):
    metrics = look(counting)
    assert all(family.documentation for family in metrics.families)
    assert metrics.sum("cdb_database_up") == 1
    assert metrics.sum("cdb_global_tags") == len(JobClient(counting.port).get("globalTags"))
    assert metrics.sum("cdb_global_tag_payload_iovs", global_tag="tiny") == 100
