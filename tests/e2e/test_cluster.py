"""`make cluster`: writes survive a switchover, all addresses answer with them, and nothing is left of the cluster at its end."""

import contextlib
import subprocess

import psutil
import requests

from deploy.cluster.local import Cluster, primary
from loadtests.service import Settings, becomes_true, running
from tests.programs import needs


@needs("patroni", "etcd", "haproxy", "squid", "nginx", "/usr/lib/postgresql/15/bin/postgres")
def test_switchover_by_patroni(new_directory):
    data = new_directory()
    data.chmod(0o711)
    with running(Settings(data, {}), program=("-m", "deploy.cluster.local"), ports=50) as service:
        cluster = Cluster((data / "cluster").resolve(), service.port)
        addresses = [f"http://127.0.0.1:{port}/api/cdb_rest" for port in (*cluster.hosts.values(), cluster.site)]

        def acknowledged(name: str) -> bool:
            tag = {"name": name, "status": "unlocked"}
            return requests.post(f"{addresses[0]}/gt", json=tag, headers={"Idempotency-Key": name}, timeout=30).ok

        assert acknowledged("before")
        old = primary(cluster)
        configuration = cluster.directory / old / "patroni.yml"
        command = ["patronictl", "-c", configuration, "switchover", "cdb", "--leader", old, "--force"]
        assert becomes_true(lambda: subprocess.run(command, check=False, capture_output=True).returncode == 0, 60)
        assert becomes_true(lambda: primary(cluster) not in (old, None), 60)
        assert becomes_true(lambda: acknowledged("after"), 60)
        for address in addresses:
            tags = requests.get(f"{address}/globalTags", timeout=30).json()
            assert {tag["name"] for tag in tags} == {"before", "after"}, address

        everything = _processes(str(data))
        assert len(everything) > 20
        service.process.terminate()
        assert service.process.wait(60) == 0
        assert _processes(str(data)) == []


def _processes(directory: str) -> list[psutil.Process]:
    """The living processes that work in a directory or name it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and directory in f"{process.cwd()} {process.cmdline()}":
                found.append(process)
    return found
