"""`make cluster`: one command starts a cluster, whose hosts and caches agree, and ends all of it."""

import shutil
import tempfile
from pathlib import Path

from deploy.cluster.local import SERVERS, Cluster
from loadtests.client import Client
from loadtests.service import Settings, becomes_true, running
from loadtests.usage import processes_in
from tests.programs import needs


@needs("/usr/lib/postgresql/15/bin/postgres", "patroni", "etcd", "haproxy", "nginx", "squid", "varnishd")
def test_a_cluster_starts_serves_and_ends():
    # The accounts of PostgreSQL and Squid cannot read the directories of pytest.
    data = Path(tempfile.mkdtemp(prefix="cdb-cluster-"))
    data.chmod(0o711)
    try:
        with running(Settings(data, {"CDB_WORKERS": "1"}), program=("-m", "deploy.cluster.local"), ports=50) as service:
            cluster = Cluster((data / "cluster").resolve(), service.port)
            first, second = (Client(f"http://127.0.0.1:{port}") for port in cluster.hosts.values())
            caches = [Client(f"http://127.0.0.1:{port}") for port in (cluster.site, cluster.central)]
            assert becomes_true(
                lambda: all(client.request("GET", "gtstatus").status == 200 for client in (first, second, *caches)), 60
            ), service.lines
            for name in ("one", "two"):
                first.call("POST", "gt", {"name": name, "status": "unlocked"})
                for client in (second, *caches):
                    assert [tag["name"] for tag in client.call("GET", "globalTags").json][-1] == name
        assert not [found for name in SERVERS for found in processes_in(cluster.directory / name / "data")]
    finally:
        shutil.rmtree(data, ignore_errors=True)
