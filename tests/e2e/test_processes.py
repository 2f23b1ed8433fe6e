"""Processes that are killed, and the commands of the units of systemd, which serve without supervisord."""

import configparser
import os
import re
import shlex
import signal
import subprocess
import time

import psutil
import pytest

from cdb.embedded import binaries
from cdb.env import ROOT
from tests.e2e.service import JobClient, Service
from tests.e2e.test_metrics import workers
from tests.programs import find
from tests.waiting import eventually, is_open, wait_until

LOOKUP = "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"
# Within it, no process of a killed service is left.
SECONDS = 15


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
    # In order, so that nothing has to be recovered.
    command = [binaries.BINARIES / "pg_controldata", service.data / "postgres" / "data"]
    control = subprocess.run(command, env=binaries.ENVIRONMENT, capture_output=True, text=True, check=True)
    assert re.search(r"cluster state: +shut down\n", control.stdout), control.stdout
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


PROGRAMS = ("granian", "gunicorn", "nginx", "compiler")


@pytest.fixture
def unit(needs_packages, service, new_directory):
    """Runs a line of a unit's section, on the database of `service`, and returns the process. All are killed at the end."""
    directory, started = new_directory(), []
    own = Service(directory / "var", "serve", DATABASE_URL=f"postgresql://cdb@/cdb?host={service.data}/postgres/socket")

    def placed(text):
        text = text.replace("/srv/cdb/var", f"{directory}/var").replace("/run/cdb", str(directory))
        return text.replace("/srv/cdb", str(ROOT)).replace("/usr/sbin/nginx", find("nginx"))

    def run(name, line="ExecStart", main=None):
        parser = configparser.RawConfigParser(strict=False)
        parser.optionxform = str
        # Of several lines "Environment=", the parser keeps one.
        text = (ROOT / f"deploy/systemd/cdb-{name}.service").read_text()
        parser.read_string(text)
        settings = dict(row.split("=", 2)[1:] for row in text.splitlines() if row.startswith("Environment="))
        settings |= {"CDB_WORKERS": "2"} if "CDB_WORKERS" in settings else {}
        settings |= {} if main is None else {"MAINPID": str(main.pid)}
        command = placed(parser["Service"][line])
        for variable, value in settings.items():
            command = command.replace(f"${{{variable}}}", value).replace(f"${variable}", value)
        environment = own.environment | {name: placed(value) for name, value in settings.items()}
        started.append(subprocess.Popen(shlex.split(command), cwd=ROOT, env=environment, start_new_session=True))
        return started[-1]

    (directory / "metrics").mkdir()
    run.port = own.port
    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


def of_program(main):
    """The workers of a program: its children, without Python's tracker of resources, which stays."""
    children = psutil.Process(main.pid).children()
    return [child for child in children if "resource_tracker" not in " ".join(child.cmdline())]


def test_the_units_serve_and_are_reloaded(unit):
    assert unit("prepare").wait(60) == 0
    running = {name: unit(name) for name in PROGRAMS}
    client = JobClient(unit.port)
    wait_until(lambda: is_open(unit.port))
    eventually(lambda: client.call("GET", LOOKUP)[0], 200, 60)
    assert client.call("POST", "pt", {"name": "OfUnits"})[0] == 200
    assert unit("prepare", "ExecReload").wait(60) == 0
    before = {name: of_program(running[name]) for name in ("granian", "gunicorn", "nginx")}
    assert all(before.values())
    for name in before:
        assert unit(name, "ExecReload", running[name]).wait(10) == 0
    deadline = time.monotonic() + 60
    # Until others have taken the place of all workers.
    while any(process.is_running() for workers in before.values() for process in workers):
        assert time.monotonic() < deadline, before
        assert len(client.get(LOOKUP)) == 10
        time.sleep(0.05)
    assert all(process.poll() is None for process in running.values())
