"""Processes that are killed (SIGKILL): with a parent all of its processes end, and what a parent loses it starts again."""

import time

import psutil
import pytest

from tests.e2e.service import JobClient
from tests.e2e.test_metrics import workers

LOOKUP = "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"
# Within it, no process of a killed service is left.
SECONDS = 15


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def answers(service):
    """Whether lookups, other reads and writes have their responses."""
    client = JobClient(service.port)
    try:
        found = [
            client.call("GET", LOOKUP),
            client.call("GET", "gt"),
            client.call("POST", "pt", {"name": str(time.time_ns())}),
        ]
    except (OSError, ValueError):
        return False
    return [status for status, _ in found] == [200, 200, 200]


@pytest.mark.parametrize("command", ["run", "serve"])
def test_a_killed_service_leaves_no_process_and_starts_again(fresh, needs_packages, command):
    service = fresh(command=command).start()
    status, _ = JobClient(service.port).call("POST", "pt", {"name": "Acknowledged"})
    assert status == 200
    service.process.kill()
    service.process.wait()
    wait_until(lambda: service.family() == [], SECONDS)
    service.start()
    assert "Acknowledged" in {one["name"] for one in JobClient(service.port).get("pt")}
    assert service.stop() == 0
    assert service.family() == []


def mains(service, program):
    """The main processes of a program of `make serve`: children of supervisord."""
    return [process for process in service.programs(program) if process.ppid() == service.process.pid]


def test_each_program_of_a_service_that_is_killed_starts_again(fresh, needs_packages):
    service = fresh(command="serve", CDB_WORKERS="2").start()
    wait_until(lambda: answers(service))
    killed: list[psutil.Process] = []
    for program in ("granian", "gunicorn", "nginx", "manage.py compiler", "bin/postgres"):
        wait_until(lambda program=program: mains(service, program))
        [main] = mains(service, program)
        killed += [main, *main.children(recursive=True)]
        main.kill()
        wait_until(lambda program=program, main=main: [one for one in mains(service, program) if one != main])
        wait_until(lambda: answers(service))
    # Nothing of the killed programs goes on beside the new ones.
    _, alive = psutil.wait_procs(killed, SECONDS)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    for program in ("granian", "gunicorn"):
        wait_until(lambda program=program: len(workers(service, program)) >= 2)
        for worker in workers(service, program):
            worker.kill()
        wait_until(lambda: answers(service))
    assert service.stop() == 0
    assert service.family() == []


def test_each_process_of_make_run_that_is_killed_starts_again(fresh):
    service = fresh(CDB_WORKERS="2").start()
    for worker in workers(service, "granian"):
        worker.kill()
    wait_until(lambda: answers(service))
    [compiler] = service.programs("manage.py compiler")
    compiler.kill()
    wait_until(lambda: [one for one in service.programs("manage.py compiler") if one != compiler])
    assert answers(service) and service.stop() == 0
