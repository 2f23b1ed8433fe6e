"""The service behind a real PgBouncer in transaction mode, where the statements of one client use many server connections."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.exporting import TAG, Watcher, begun, wait_until
from tests.e2e.pooler import pooler
from tests.e2e.service import JobClient
from tests.programs import needs

pytestmark = needs("pgbouncer")


@pytest.fixture
def pooled(service, fresh, new_directory):
    """A service that reaches the database of `service` through a pool of two server connections."""
    with pooler(service, new_directory(), settings="default_pool_size = 2") as url:
        yield fresh("pooled", DATABASE_URL=url, SCENARIO="none").start()


def test_lookups_writes_and_streams_share_two_server_connections(pooled, service):
    client = JobClient(pooled.port)
    client.call("POST", "pt", {"name": "Pooled"})

    def work(number):
        tag = f"pooled{number}"
        assert client.call("POST", "gt", {"name": tag, "status": "unlocked"})[0] == 200
        name = client.call("POST", "pl", {"payload_type": "Pooled"})[1]["name"]
        assert client.call("PUT", "pl_attach", {"global_tag": tag, "payload_list": name})[0] == 200
        rows = [
            {"payload_url": f"{tag}/{major}", "payload_list": name, "major_iov": major, "minor_iov": 0}
            for major in range(50)
        ]
        assert client.call("POST", "bulk_piov", rows)[0] == 200
        for major in range(50):
            assert client.get(f"payloadiovs/?gtName={tag}&majorIOV={major}&minorIOV=7")[0][1] == f"{tag}/{major}"
        assert len(client.get(f"globalTag/{tag}")["payload_lists"][0]["payload_iov"]) == 50
        assert client.call("POST", f"cloneGlobalTag/{tag}/{tag}copy", None)[1]["payload_iov_count"] == 50
        assert client.call("DELETE", f"deleteGlobalTag/{tag}")[0] == 200

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(work, range(16)))
    assert service.manage("check_counts").returncode == 0


def test_exports_that_are_left_half_way_give_the_server_connections_back(pooled, service):
    assert pooled.manage("seed_scenario", TAG).returncode == 0
    client, watcher = JobClient(pooled.port), Watcher(service)
    # More often than there are connections.
    for _ in range(5):
        with begun(pooled.port):
            pass
        wait_until(watcher.is_free)
        assert client.get(f"payloadiovs/?gtName={TAG}&majorIOV=5&minorIOV=0")
    assert client.call("DELETE", f"deleteGlobalTag/{TAG}")[0] == 200
    watcher.close()
