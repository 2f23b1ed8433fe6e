"""The embedded PostgreSQL: shared by the service and commands, stopped by the last of them, restarted when it crashes."""

import time

import psutil

from tests.e2e.service import JobClient


def test_commands_use_the_running_server_and_leave_it_running(service):
    result = service.manage("seed_scenario", "tiny")
    assert "already exists" in result.stdout
    assert JobClient(service.port).get("globalTags")[0]["name"] == "tiny"


def test_commands_start_the_server_where_none_runs_and_stop_it_again(fresh):
    service = fresh()
    assert service.manage("migrate").returncode == 0
    assert "Global tag tiny created" in service.manage("seed_scenario", "tiny").stdout
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


def test_a_data_directory_with_an_awkward_name_and_a_path_too_long_for_a_socket_works(fresh):
    name = "/".join([*["long" * 10] * 3, "a b'c%41d\"e$HOMEé#f?g&h,i"])
    service = fresh(name, is_first_start=True, SCENARIO="none").start()
    assert JobClient(service.port).get("globalTags") == []
    service.stop()
    assert service.family() == []
