"""The service behind a real PgBouncer in transaction mode, where statements of one client meet many server connections."""

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.exporting import TAG, Watcher, begun, wait_until
from tests.e2e.service import JobClient, free_port

pytestmark = pytest.mark.skipif(
    not shutil.which("pgbouncer"), reason="pgbouncer is not installed (apt-get install pgbouncer)"
)


@pytest.fixture
def pooled(service, fresh, new_directory):
    """A service that reaches the database of `service` through a pool of two server connections."""
    port = free_port()
    directory = new_directory()
    sockets = service.data / "postgres" / "socket"
    (directory / "users.txt").write_text('"cdb" ""\n')
    (directory / "pgbouncer.ini").write_text(
        f"[databases]\ncdb = host={sockets} dbname=cdb user=cdb\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
        f"auth_file = {directory}/users.txt\npool_mode = transaction\ndefault_pool_size = 2\n"
    )
    # Like PostgreSQL it refuses to be root; the server's account may enter the socket's directory.
    owner = sockets.stat()
    as_root = os.geteuid() == 0
    directory.chmod(0o755)
    pool = subprocess.Popen(
        ["pgbouncer", str(directory / "pgbouncer.ini")],
        user=owner.st_uid if as_root else None,
        group=owner.st_gid if as_root else None,
        extra_groups=[] if as_root else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(1)
    assert pool.poll() is None
    yield fresh("pooled", DATABASE_URL=f"postgresql://cdb@127.0.0.1:{port}/cdb", SCENARIO="none").start()
    pool.terminate()
    pool.wait(10)


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
