"""The embedded PostgreSQL: started and stopped by a command where no service runs; odd paths of data directories."""

from tests.e2e.service import JobClient


def test_commands_start_the_server_where_none_runs_and_stop_it_again(fresh):
    service = fresh()
    assert service.manage("migrate").returncode == 0
    assert "Global tag tiny created" in service.manage("seed_scenario", "tiny").stdout
    assert service.family() == []


def test_a_data_directory_with_an_awkward_name_and_a_path_too_long_for_a_socket_works(fresh):
    name = "/".join([*["long" * 10] * 3, "a b'c%41d\"e$HOMEé#f?g&h,i"])
    service = fresh(name, is_first_start=True, SCENARIO="none").start()
    assert JobClient(service.port).get("globalTags") == []
    service.stop()
    assert service.family() == []
