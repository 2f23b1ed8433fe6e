"""`make run`: starting, stopping, being killed, wrong settings, and several at the same time."""

import contextlib
import json
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request

import psutil
import pytest

from cdb import env
from cdb.env import ROOT
from tests.e2e.service import JobClient
from tests.waiting import eventually


def test_it_ends_its_start_with_the_url_a_lookup_that_works_and_how_to_stop(service):
    url, lookup, access, stop = service.start_lines[-4:]
    assert access.startswith("Writes are open")
    assert f"http://127.0.0.1:{service.port}" in url
    assert "Ctrl-C" in stop
    command = shlex.split(lookup.removeprefix("Try:"))
    assert command[0] == "curl"
    with urllib.request.urlopen(command[-1]) as answer:  # noqa: S310
        assert len(json.load(answer)) == 10


def test_after_killing_everything_the_next_start_has_all_that_was_acknowledged(fresh):
    service = fresh(SCENARIO="none").start()
    status, _ = JobClient(service.port).call("POST", "gt", {"name": "tag", "status": "unlocked"})
    assert status == 200
    service.kill_everything()
    # The number of the process may be used again by then.
    record = service.data / "postgres" / "data" / "postmaster.pid"
    record.write_text("\n".join(["1", *record.read_text().split("\n")[1:]]))
    service.start()
    assert [tag["name"] for tag in JobClient(service.port).get("globalTags")] == ["tag"]
    # `Service.running` stops with SIGTERM.
    assert service.stop(signal.SIGHUP) == 0
    assert service.family() == []


@pytest.mark.parametrize("command", ["run", "serve"])
def test_a_port_in_use_is_one_clear_line(fresh, needs_packages, command):
    service = fresh()
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", service.port))
        holder.listen()
        result = service.manage(command)
    assert result.returncode == 1
    [line] = result.stderr.strip().splitlines()
    assert line.endswith(f": port {service.port} is in use; choose another one: make {command} PORT={service.port + 1}")
    assert service.family() == []


@pytest.mark.parametrize(
    ("settings", "part"),
    [({"SCENARIO": "huge"}, "SCENARIO must be none or one of tiny"), ({"CDB_IOV_MODE": "both"}, "CDB_IOV_MODE")],
)
def test_a_wrong_setting_is_one_clear_line(fresh, settings, part):
    result = fresh(**settings).manage("run")
    assert result.returncode == 1
    assert part in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_an_external_database_is_used_and_none_is_started(fresh, service):
    with_url = fresh(SCENARIO="none", DATABASE_URL=f"postgresql://cdb@/cdb?host={service.data}/postgres/socket").start()
    assert "the server of DATABASE_URL" in with_url.start_lines[0]
    assert JobClient(with_url.port).get("globalTags")[0]["name"] == "tiny"
    assert "postgres" not in with_url.ask_each(psutil.Process.name).values()
    with_url.stop()
    assert JobClient(service.port).get("globalTags")[0]["name"] == "tiny"


def test_a_signal_while_it_starts_stops_all_too(fresh):
    service = fresh(is_first_start=True)
    for seconds in (0.4, 1.3):
        process = subprocess.Popen(
            [sys.executable, "manage.py", "run"],
            cwd=ROOT,
            env=service.environment,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.terminate()
        process.wait(60)
        # The child of an interrupted initdb ends a moment later.
        eventually(service.family, [])
    service.start()
    assert len(JobClient(service.port).get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")) == 10


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("postgresql://missing@127.0.0.1:1/cdb", "can't reach the database at 127.0.0.1:1/cdb"),
        ("mysql://u@h/d", "DATABASE_URL must look like"),
        ("postgresql://u@h?nonsense=1", "DATABASE_URL is not valid: invalid URI query parameter"),
        ("postgresql://u:secret%rd@h/d", "DATABASE_URL is not valid: invalid percent-encoded token"),
        ("postgresql://u@h:port/d", "invalid integer value"),
    ],
)
def test_a_wrong_database_is_one_line_without_traceback_or_password(url, part):
    result = subprocess.run(
        [sys.executable, "manage.py", "check_intervals"],
        cwd=env.ROOT,
        capture_output=True,
        text=True,
        env={"DATABASE_URL": url, "PATH": "/usr/bin:/bin", "CDB_ENV_FILE": "/dev/null"},
    )
    assert result.returncode == 1
    assert part in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "secret" not in result.stderr
