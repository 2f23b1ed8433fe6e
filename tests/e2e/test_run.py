"""`make run`: starting, stopping, being killed, and living beside others."""

import contextlib
import functools
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import psutil
import pytest

from cdb.embedded_postgres import EmbeddedPostgres
from cdb.env import ROOT
from tests.e2e.service import JobClient


@pytest.fixture
def fresh(fresh):
    """Services that are started for the first time."""
    return functools.partial(fresh, is_first_start=True)


def test_it_ends_its_start_with_the_url_a_lookup_that_works_and_how_to_stop(service):
    url, lookup, stop = service.start_lines[-3:]
    assert f"http://127.0.0.1:{service.port}" in url
    assert "Ctrl-C" in stop
    command = shlex.split(lookup.removeprefix("Try:"))
    assert command[0] == "curl"
    with urllib.request.urlopen(command[-1]) as answer:  # noqa: S310
        assert len(json.load(answer)) == 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_all_that_it_started(fresh, number):
    service = fresh().start()
    assert any("postgres" in process.name() for process in service.family())
    assert service.stop(number) == 0
    assert service.family() == []


def test_after_killing_everything_the_next_start_has_all_that_was_acknowledged(fresh):
    service = fresh(SCENARIO="none").start()
    for round_number in range(3):
        status, _ = JobClient(service.port).call("POST", "gt", {"name": f"tag{round_number}", "status": "unlocked"})
        assert status == 200
        service.kill_everything()
        service.start()
        names = [tag["name"] for tag in JobClient(service.port).get("globalTags")]
        assert names == [f"tag{number}" for number in range(round_number + 1)]


@pytest.mark.parametrize("command", ["run", "serve"])
def test_when_the_command_is_killed_everything_else_ends_too(fresh, needs_packages, command):
    service = fresh(command=command).start()
    assert service.programs("postgres -D")
    service.process.kill()
    service.process.wait()
    deadline = time.monotonic() + 60
    while left := service.family():
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    # In order, so nothing has to be recovered.
    log = (service.data / "postgres" / "server.log").read_text()
    assert "database system is shut down" in log.splitlines()[-1]


def test_a_server_that_others_use_outlives_a_killed_command(fresh):
    service = fresh(SCENARIO="none").start()
    other = fresh(SCENARIO="none")
    other.environment["PORT"] = str(other.port)
    other.start()
    service.process.kill()
    service.process.wait()
    for _ in range(20):
        assert JobClient(other.port).get("globalTags") == []
        time.sleep(0.1)
    assert other.stop() == 0
    assert other.family() == []


def test_when_only_the_command_is_killed_the_rest_does_not_hinder_the_next_start(fresh):
    service = fresh().start()
    service.process.kill()
    service.process.wait()
    service.start()
    assert JobClient(service.port).get("globalTags")[0]["name"] == "tiny"
    service.stop()
    assert service.family() == []


def test_a_process_number_that_is_used_again_does_not_hinder_the_next_start(fresh):
    service = fresh().start()
    service.kill_everything()
    record = service.data / "postgres" / "data" / "postmaster.pid"
    lines = record.read_text().split("\n")
    record.write_text("\n".join(["1", *lines[1:]]))
    service.start()
    assert JobClient(service.port).get("globalTags")[0]["name"] == "tiny"


def test_two_run_side_by_side(fresh, service):
    other = fresh("other", SCENARIO="none").start()
    assert JobClient(other.port).get("globalTags") == []
    assert JobClient(service.port).get("globalTags")[0]["name"] == "tiny"
    other.stop()
    assert JobClient(service.port).get("globalTags")[0]["name"] == "tiny"


def test_commands_use_the_running_server_and_leave_it_running(service):
    result = service.manage("seed_scenario", "tiny")
    assert "is there already" in result.stdout
    assert JobClient(service.port).get("globalTags")[0]["name"] == "tiny"


def test_commands_start_the_server_where_none_runs_and_stop_it_again(fresh):
    service = fresh()
    assert service.manage("migrate").returncode == 0
    assert "Global tag tiny made" in service.manage("seed_scenario", "tiny").stdout
    assert service.family() == []


def test_a_command_that_started_the_server_does_not_take_it_away_from_the_service(fresh):
    service = fresh(SCENARIO="none")
    command = subprocess.Popen(
        [sys.executable, "manage.py", "shell", "-c", "import sys; print('up', flush=True); sys.stdin.read()"],
        cwd=ROOT, env=service.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert any(line == "up\n" for line in command.stdout)
    service.start()
    command.stdin.close()
    assert command.wait(30) == 0
    assert JobClient(service.port).get("globalTags") == []
    service.stop()
    assert service.family() == []


def test_a_server_that_dies_alone_is_started_again(fresh):
    service = fresh().start()
    client = JobClient(service.port)
    before = client.get("globalTags")
    postmaster = psutil.Process(int((service.data / "postgres/data/postmaster.pid").read_text().split()[0]))
    postmaster.kill()
    deadline = time.monotonic() + 30
    while (answer := client.call("GET", "globalTags"))[0] != 200:
        assert answer[0] == 504
        assert time.monotonic() < deadline
    assert answer[1] == before
    service.stop()
    assert service.family() == []


def test_a_port_in_use_is_one_clear_line(fresh):
    service = fresh()
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", service.port))
        holder.listen()
        result = service.manage("run")
    assert result.returncode == 1
    assert (
        result.stderr.strip()
        == f"CommandError: port {service.port} is in use; choose another one: make run PORT={service.port + 1}"
    )
    assert service.family() == []


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"SCENARIO": "huge"}, "SCENARIO must be none or one of tiny"),
        ({"CDB_IOV_MODE": "both"}, "CDB_IOV_MODE"),
        ({"DATABASE_URL": "postgresql://127.0.0.1:1/cdb"}, "can't reach the database at 127.0.0.1:1/cdb"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(fresh, settings, part):
    result = fresh(**settings).manage("run")
    assert result.returncode == 1
    assert part in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_an_external_database_is_used_and_none_is_started(fresh, service):
    with_url = fresh(SCENARIO="none", DATABASE_URL=f"postgresql://cdb@/cdb?host={service.data}/postgres/socket").start()
    assert "the one of DATABASE_URL" in with_url.start_lines[0]
    assert JobClient(with_url.port).get("globalTags")[0]["name"] == "tiny"
    assert not any("postgres" in process.name() for process in with_url.family())
    with_url.stop()
    assert JobClient(service.port).get("globalTags")[0]["name"] == "tiny"


def test_a_data_directory_with_a_path_too_long_for_a_socket_works(fresh):
    service = fresh("/".join(["long" * 10] * 3), SCENARIO="none").start()
    assert JobClient(service.port).get("globalTags") == []
    service.stop()
    assert service.family() == []


@pytest.mark.parametrize("name", ["a b'c%41d", 'a"b$HOMEé', "a#b?c&d", "a,b"])
def test_a_data_directory_with_an_awkward_name_works(fresh, name):
    service = fresh(name, SCENARIO="none").start()
    assert JobClient(service.port).get("globalTags") == []
    service.stop()
    assert service.family() == []


def test_the_documentation_page_is_served_with_all_its_assets_by_us(service):
    base = f"http://127.0.0.1:{service.port}"
    with urllib.request.urlopen(f"{base}/api/docs/") as answer:  # noqa: S310
        page = answer.read().decode()
    assets = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(assets) >= 3
    for asset in assets:
        assert asset.startswith(("/static/", "/api/docs/", "/favicon.ico")), asset
        with urllib.request.urlopen(base + asset) as answer:  # noqa: S310
            assert answer.status == 200 and answer.read(100)
    # Within the page itself no address of elsewhere is loaded either.
    assert not re.findall(r"(?:src|href|url)[=:(]\s*[\"']?https?://", page)


@pytest.mark.parametrize("seconds", [0.1, 0.3, 0.5, 0.8, 1.2, 1.6, 2.0])
def test_a_signal_while_it_starts_stops_all_too(fresh, seconds):
    service = fresh()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "run"], cwd=ROOT, env=service.environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.terminate()
    process.wait(60)
    assert service.family() == []
    service.start()
    assert len(JobClient(service.port).get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")) == 10


@pytest.mark.parametrize("seconds", [0.3, 0.6, 0.9, 1.2])
def test_a_kill_while_it_starts_for_the_first_time_leaves_nothing_half_made(fresh, seconds):
    service = fresh()
    service.process = subprocess.Popen(
        [sys.executable, "manage.py", "run"], cwd=ROOT, env=service.environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with contextlib.suppress(subprocess.TimeoutExpired):
        service.process.wait(seconds)
    service.kill_everything()
    service.start()
    assert len(JobClient(service.port).get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")) == 10


def test_the_names_of_other_hosts_do_not_keep_it_from_starting(fresh):
    service = fresh(CDB_ALLOWED_HOSTS="cdb.example.org").start()
    assert len(JobClient(service.port).get("globalTags")) == 1


def test_variables_of_libpq_do_not_divert_it(fresh):
    service = fresh(PGPORT="5433", PGHOSTADDR="127.0.0.1", PGDATABASE="elsewhere").start()
    assert len(JobClient(service.port).get("globalTags")) == 1
    service.stop()
    assert service.family() == []


def test_who_uses_the_embedded_server_for_a_moment_leaves_no_process(new_directory):
    directory = new_directory()
    for _ in range(10):
        server = EmbeddedPostgres(directory / "postgres")
        server.acquire()
        server.release()
        commands = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
        assert [command for command in commands if str(directory) in command] == []


def test_a_server_whose_parent_does_not_collect_it_counts_as_ended(new_directory):
    directory = new_directory() / "postgres"
    script = (
        "import sys, pathlib; from cdb.embedded_postgres import EmbeddedPostgres; "
        "EmbeddedPostgres(pathlib.Path(sys.argv[1])).acquire(); print('up', flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(directory)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert any(line == "up\n" for line in parent.stdout)
        # Raises where it waits for more than a minute.
        EmbeddedPostgres(directory)._process.stop()
        assert parent.poll() is None
    finally:
        parent.communicate("", timeout=60)
