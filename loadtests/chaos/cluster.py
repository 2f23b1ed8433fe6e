"""A cluster, as `make cluster` starts it, and what faults do to its parts."""

import contextlib
import http.client
import json
import os
import pwd
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from deploy.cluster.local import ETCDS, SERVERS, Cluster, primary, status
from loadtests import usage
from loadtests.chaos.stage import Place, Stage
from loadtests.harness import Database
from loadtests.service import ServiceError, Settings, becomes_true, frozen, kill
from loadtests.service import running as running_service

PORTS = 50
# With the time until Patroni gives up a primary that does not start.
SETTLE_SECONDS = 240
# PostgreSQL of each host has its own small file system, which can be full.
DISK_BYTES = 3 << 30
BOTH = PATRONI, POSTGRESQL = "patroni", "postgresql"


@contextlib.contextmanager
def running(data: Path) -> Iterator[Place]:
    """A cluster. Raises `ServiceError` if it does not start."""
    settings, directory = Settings(data, {}), (data / "cluster").resolve()
    _mount(directory)
    try:
        with running_service(settings, program=("-m", "deploy.cluster.local"), ports=PORTS) as service:
            cluster = Cluster(directory, service.port)
            commands = settings.having(
                DATABASE_URL=cluster.database_url("a"), CDB_SECRET_KEY=cluster.secret("secret-key") * 2
            )
            hosts = [f"http://127.0.0.1:{port}" for port in cluster.front]
            yield Place(service, commands, hosts, lambda: settle(cluster))
    finally:
        for name in SERVERS:
            kill(usage.processes_in(directory / name / "data"))
            if (directory / name).is_mount():
                subprocess.run(["umount", "--lazy", directory / name], check=False)


def _mount(directory: Path) -> None:
    """Mount a small file system for each PostgreSQL, if this process may."""
    for name in SERVERS:
        (directory / name).mkdir(parents=True)
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            options = f"size={DISK_BYTES},mode=0700,uid={account.pw_uid},gid={account.pw_gid}"
            command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory / name]
            subprocess.run(command, check=False, capture_output=True)


def settle(cluster: Cluster) -> None:
    """Wait until all parts work. Raises `ServiceError` if they do not in time."""

    def works() -> bool:
        states = sorted(member["role"] for member in _members(cluster) if member["state"] in ("running", "streaming"))
        is_whole = states == ["leader", "replica", "sync_standby"]
        return is_whole and all(status(port, "/health/ready") == 200 for port in cluster.front)

    if not becomes_true(works, SETTLE_SECONDS):
        raise ServiceError(f"the cluster did not recover within {SETTLE_SECONDS} s: {_members(cluster)}")


def _members(cluster: Cluster) -> list[dict[str, Any]]:
    """The servers as Patroni shows them; empty if it does not respond."""
    for port in cluster.patroni.values():
        with contextlib.suppress(OSError, ValueError):
            return _ask(port, "cluster")["members"]
    return []


def _ask(port: int, path: str, body: object = None, method: str = "GET") -> Any:
    """A request to Patroni. Raises `OSError` without a response or with an error status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SETTLE_SECONDS if method == "POST" else 5)
    with contextlib.closing(connection):
        connection.request(method, f"/{path}", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
    if response.status >= 400:
        raise OSError(f"{path}: status {response.status}: {text[:200]!r}")
    return json.loads(text) if text.startswith(b"{") else None


class Parts:
    """The parts of the cluster on a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.seconds, self.wait_until = stage, stage.seconds, stage.wait_until
        self.cluster = Cluster(stage.data / "cluster", stage.service.port)

    def program(self, name: str) -> list[psutil.Process]:
        """A program of supervisord with its children. Raises `ServiceError` if it does not run."""
        [supervisor] = self.stage.service.root().children()
        for process in supervisor.children():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("SUPERVISOR_PROCESS_NAME") == name:
                    return [process, *process.children(recursive=True)]
        raise ServiceError(f"{name} is not running")

    def postgresql(self, name: str) -> list[psutil.Process]:
        """The processes of PostgreSQL on a host, which are not children of Patroni."""
        return usage.processes_in(self.cluster.directory / name / "data")

    def leader(self) -> str:
        """The name of the primary. Raises `ServiceError` if there is none."""
        if (name := primary(self.cluster)) is None:
            raise ServiceError("there is no primary")
        return name

    def synchronous(self) -> str | None:
        """The name of the synchronous standby; None if there is none."""
        return next((item["name"] for item in _members(self.cluster) if item["role"] == "sync_standby"), None)

    def database(self, name: str) -> Database:
        """The database on a server, for the superuser."""
        password, port = self.cluster.secret("superuser-password"), self.cluster.postgresql[name]
        return Database(f"postgresql://postgres:{password}@127.0.0.1:{port}/cdb")

    def is_primary(self, name: str) -> bool:
        """Whether Patroni shows this server as the primary and it executes statements."""
        if status(self.cluster.patroni[name], "/primary") != 200:
            return False
        with contextlib.suppress(Exception):
            return self.database(name).value("SELECT pg_is_in_recovery()") is False
        return False

    def wait_for_primary(self, *, other_than: str = "") -> float:
        """Wait until there is a primary; returns when."""
        others = [name for name in SERVERS if name != other_than]
        self.wait_until(lambda: any(map(self.is_primary, others)), "there was no primary")
        return time.monotonic()

    @contextlib.contextmanager
    def frozen(self, name: str, programs: Sequence[str]) -> Iterator[None]:
        """Freeze Patroni, PostgreSQL or both of a server inside the block.

        At the end Patroni is killed, because the watchdog of a real host would have restarted it. Otherwise Patroni before
        3.0.3 may overwrite the lock of the new primary.
        """
        patroni = self.program(name) if PATRONI in programs else []
        with frozen([*patroni, *(self.postgresql(name) if POSTGRESQL in programs else [])]):
            try:
                yield
            finally:
                kill(patroni)

    def lose(self, name: str, killed: str, stopped: Sequence[str], is_over: Callable[[], bool]) -> float:
        """Kill Patroni or PostgreSQL of a server, and freeze some, until the cluster has recovered; returns when it had."""
        with self.frozen(name, stopped):
            kill({PATRONI: self.program, POSTGRESQL: self.postgresql}[killed](name) if killed else [])
            self.wait_until(is_over, f"the cluster did not recover from the loss of {name}")
            returned = time.monotonic()
            time.sleep(self.seconds / 2 if stopped else 0)
        return returned

    def is_back(self, name: str, old: psutil.Process) -> bool:
        """Whether a program runs again, and responds, or what depends on it."""
        port = self.cluster.site if "squid" in name else self.cluster.hosts["a"]
        address = (self.cluster.etcd[name], "/health") if name in ETCDS else (port, "/health/ready")
        with contextlib.suppress(ServiceError):
            return self.program(name)[0] != old and status(*address) == 200
        return False

    def configure(self, *, is_synchronous: bool) -> None:
        """Choose synchronous or asynchronous replication."""
        port = self.cluster.patroni[self.leader()]
        _ask(port, "config", {"synchronous_mode": is_synchronous}, "PATCH")

    def make_primary(self, name: str) -> float:
        """Switch over to a server; returns when it was the primary."""

        def is_done() -> bool:
            old = primary(self.cluster)
            if old not in (None, name):
                # Refused until the server has the last writes.
                with contextlib.suppress(OSError):
                    _ask(self.cluster.patroni[old], "switchover", {"leader": old, "candidate": name}, "POST")
            return self.is_primary(name)

        self.wait_until(is_done, f"{name} did not become the primary")
        return time.monotonic()

    def restart(self, name: str, text: str) -> None:
        """Restart a program with more settings in its section of supervisord's configuration."""
        path = self.cluster.directory / "supervisord.conf"
        before, title, after = path.read_text().partition(f"[program:{name}]\n")
        # Later settings of a name replace earlier ones.
        mark, lines = "; chaos\n", after.split("\n[", 1)
        lines[0] = lines[0].split(mark)[0].rstrip("\n") + "\n" + mark + text
        path.write_text(before + title + "\n[".join(lines))
        command = [sys.executable, "-m", "supervisor.supervisorctl", "-c", path, "update", name]
        subprocess.run(command, check=True, capture_output=True)

    def wait_for_host(self, host: str) -> None:
        """Wait until a host of the service is ready."""
        port = self.cluster.hosts[host]
        self.wait_until(lambda: status(port, "/health/ready") == 200, f"host {host} was not ready")
