"""The commands of the units of systemd, which serve together without supervisord."""

import configparser
import os
import shlex
import signal
import subprocess
import time

import pytest

from cdb.env import ROOT
from tests.e2e.service import JobClient, Service
from tests.programs import find

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


def test_the_units_serve_and_are_reloaded(unit):
    assert unit("prepare").wait(60) == 0
    running = {name: unit(name) for name in PROGRAMS}
    client = JobClient(unit.port)
    deadline = time.monotonic() + 60
    while True:
        try:
            assert len(client.get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")) == 10
            break
        except (AssertionError, OSError):
            assert time.monotonic() < deadline and all(process.poll() is None for process in running.values())
            time.sleep(0.2)
    assert client.call("POST", "pt", {"name": "OfUnits"})[0] == 200
    assert unit("prepare", "ExecReload").wait(60) == 0
    for name in ("granian", "gunicorn", "nginx"):
        assert unit(name, "ExecReload", running[name]).wait(10) == 0
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        assert len(client.get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")) == 10
        time.sleep(0.05)
    assert all(process.poll() is None for process in running.values())
