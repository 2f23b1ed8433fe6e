"""The faults of a cluster, as `make cluster` starts it, and the cluster itself (`make chaos CLUSTER=1`)."""

import contextlib
import itertools
import json
import os
import pwd
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from cdb.env import ROOT
from deploy.cluster.local import HOSTS, SERVERS, Cluster, primary, status
from loadtests import usage
from loadtests.chaos.oracle import ALL, FREEZES, NEVER, STALE
from loadtests.chaos.stage import CLUSTER_FAULTS, Place, SkippedError, Stage, fault
from loadtests.client import Client, Response, lookup_path
from loadtests.content.expected import insert_body, row_of
from loadtests.harness import Database
from loadtests.service import ServiceError, Settings, becomes_true, frozen, kill
from loadtests.service import running as running_service

PORTS = 50
# With the time until Patroni gives up a primary that does not start.
SETTLE_SECONDS = 240
# A standby is cut off this long before an asynchronous failover.
LAG_SECONDS = 3
# Longer than a client needs to freeze a tag and to read it everywhere.
PAUSE_SECONDS = 10
# PostgreSQL of each host has its own small file system, which can be full.
DISK_BYTES = 3 << 30
CLOCK_SECONDS = ("+3600", "-7200", "+0")
PRIMARY, STANDBY = "Patroni shows a primary, and it executes statements", "Patroni shows a synchronous standby"
ANOTHER = "Patroni shows another primary"
# A part of the code of the next version.
MIGRATION = """from django.db import migrations
class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "{last}")]
    operations = [migrations.RunSQL('ALTER TABLE "PayloadIOV" ADD COLUMN chaos text')]
"""
NOT_COPIED = (".git", ".venv", ".tools", "var", "__pycache__", "tests", ".*_cache", ".hypothesis")
cluster_fault = partial(fault, into=CLUSTER_FAULTS, ends_connections=True, has_clients=True, recovery_seconds=3.0)


@contextlib.contextmanager
def running(data: Path) -> Iterator[Place]:
    """A cluster. Raises `ServiceError` if it does not start."""
    settings, directory = Settings(data, {}), (data / "cluster").resolve()
    disks = _mount(directory) if os.geteuid() == 0 else []
    try:
        with running_service(settings, program=("-m", "deploy.cluster.local"), ports=PORTS) as service:
            cluster = Cluster(directory, service.port)
            commands = settings.having(
                DATABASE_URL=cluster.database_url("a"), CDB_SECRET_KEY=cluster.secret("secret-key") * 2
            )
            hosts = [f"http://127.0.0.1:{port}" for port in (*cluster.hosts.values(), cluster.site)]
            yield Place(service, commands, hosts, lambda: _settle(cluster))
    finally:
        for name in SERVERS:
            kill(usage.processes_in(directory / name / "data"))
        for disk in disks:
            subprocess.run(["umount", "--lazy", disk], check=False)


def _mount(directory: Path) -> list[Path]:
    directory.mkdir(parents=True)
    account, disks = pwd.getpwnam("postgres"), [directory / name for name in SERVERS]
    for disk in disks:
        disk.mkdir()
        options = f"size={DISK_BYTES},mode=0700,uid={account.pw_uid},gid={account.pw_gid}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], check=True)
    return disks


def _settle(cluster: Cluster) -> None:
    """Wait until all parts work. Raises `ServiceError` if they do not in time."""

    def works() -> bool:
        states = sorted(member["role"] for member in _members(cluster) if member["state"] in ("running", "streaming"))
        ports = [*cluster.hosts.values(), cluster.site]
        return states == ["leader", "replica", "sync_standby"] and all(
            status(port, "/health/ready") == 200 for port in ports
        )

    if not becomes_true(works, SETTLE_SECONDS):
        raise ServiceError(f"the cluster did not recover within {SETTLE_SECONDS} s: {_members(cluster)}")


def _members(cluster: Cluster) -> list[dict[str, Any]]:
    """The servers as Patroni shows them; empty if it does not respond."""
    for port in cluster.patroni.values():
        with contextlib.suppress(OSError, ValueError):
            return _ask(port, "cluster")["members"]
    return []


def _ask(port: int, path: str, body: object = None, method: str | None = None) -> Any:
    """A request to Patroni or etcd. Raises `OSError` without a response or with an error status."""
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", content, headers, method=method)
    with urllib.request.urlopen(request, timeout=SETTLE_SECONDS if method == "POST" else 5) as response:  # noqa: S310 -- the address is ours
        text = response.read()
    return json.loads(text) if text.startswith(b"{") else text


class Parts:
    """The parts of the cluster on a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
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
        """The name of the synchronous standby."""
        return next((item["name"] for item in _members(self.cluster) if item["role"] == "sync_standby"), None)

    def database(self, name: str) -> Database:
        """The database on a server, for the superuser."""
        password, port = self.cluster.secret("superuser-password"), self.cluster.postgresql[name]
        return Database(f"postgresql://postgres:{password}@127.0.0.1:{port}/cdb")

    def is_primary(self, name: str | None) -> bool:
        """Whether Patroni shows this server as the primary and it executes statements."""
        if name is None or status(self.cluster.patroni[name], "/primary") != 200:
            return False
        with contextlib.suppress(Exception):
            return self.database(name).value("SELECT pg_is_in_recovery()") is False
        return False

    def wait_for_primary(self, *, other_than: str = "") -> float:
        """Wait until there is a primary; returns when."""
        others = [name for name in SERVERS if name != other_than]
        self.stage.wait_until(lambda: any(self.is_primary(name) for name in others), "there was no primary")
        return time.monotonic()

    def configure(self, *, is_synchronous: bool) -> None:
        """Choose synchronous or asynchronous replication."""
        port = self.cluster.patroni[self.leader()]
        _ask(port, "config", {"synchronous_mode": is_synchronous}, "PATCH")

    def make_primary(self, name: str) -> float:
        """Switch over to a server; returns when it was the primary."""

        def is_done() -> bool:
            old = primary(self.cluster)
            if old is not None and old != name:
                # Refused until the server has the last writes.
                with contextlib.suppress(OSError):
                    _ask(self.cluster.patroni[old], "switchover", {"leader": old, "candidate": name}, "POST")
            return self.is_primary(name)

        self.stage.wait_until(is_done, f"{name} did not become the primary")
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
        self.stage.wait_until(lambda: status(port, "/health/ready") == 200, f"host {host} was not ready")


@cluster_fault("none", "no fault", "the end")
def nothing(stage: Stage) -> None:
    """Inject no fault, for comparison."""
    time.sleep(stage.seconds)


@cluster_fault("switchover", "switchover by Patroni", ANOTHER)
def switch_over(stage: Stage) -> float:
    """Give the role of the primary to the synchronous standby."""
    parts = Parts(stage)
    return parts.make_primary(str(parts.synchronous()))


@cluster_fault("primary-kill", "PostgreSQL of the primary killed (SIGKILL)", PRIMARY)
def kill_primary(stage: Stage) -> float:
    """Kill PostgreSQL; its Patroni starts it again, or another server becomes the primary."""
    parts = Parts(stage)
    kill(parts.postgresql(parts.leader()))
    return parts.wait_for_primary()


@cluster_fault("primary-power", "PostgreSQL of the primary killed, and its Patroni frozen", ANOTHER, is_killed=True)
@cluster_fault("primary-freeze", "the primary frozen with its Patroni, as if it were unreachable", ANOTHER)
def lose_primary(stage: Stage, *, is_killed: bool = False) -> float:
    """Lose the host of the primary, until another one has been the primary for some seconds."""
    parts = Parts(stage)
    old = parts.leader()
    with frozen(parts.program(old)), contextlib.ExitStack() as stack:
        processes = parts.postgresql(old)
        if is_killed:
            kill(processes)
        else:
            stack.enter_context(frozen(processes))
        returned = parts.wait_for_primary(other_than=old)
        time.sleep(stage.seconds / 2)
    return returned


@cluster_fault(
    "patroni-freeze", "Patroni of the primary frozen: two servers believe that they are the primary", ANOTHER
)
def freeze_patroni(stage: Stage) -> float:
    """Freeze Patroni of the primary, whose PostgreSQL continues, until another server has been the primary for some seconds."""
    parts = Parts(stage)
    old = parts.leader()
    with frozen(parts.program(old)):
        returned = parts.wait_for_primary(other_than=old)
        time.sleep(stage.seconds / 2)
    return returned


@cluster_fault("patroni-kill", "Patroni of the primary killed (SIGKILL)", PRIMARY)
def kill_patroni(stage: Stage) -> float:
    """Kill Patroni of the primary; PostgreSQL continues, and Patroni starts again."""
    parts = Parts(stage)
    kill(parts.program(parts.leader()))
    return parts.wait_for_primary()


@cluster_fault("standby-kill", "PostgreSQL of the synchronous standby killed (SIGKILL)", STANDBY, is_killed=True)
@cluster_fault("standby-freeze", "the synchronous standby frozen with its Patroni", "Patroni shows another one")
def lose_standby(stage: Stage, *, is_killed: bool = False) -> float:
    """Lose the synchronous standby; Patroni makes another one synchronous."""
    parts = Parts(stage)
    old = parts.synchronous()
    processes = parts.postgresql(str(old))
    with frozen([] if is_killed else [*parts.program(str(old)), *processes]):
        if is_killed:
            kill(processes)
        is_back = [None] if is_killed else [None, old]
        stage.wait_until(lambda: parts.synchronous() not in is_back, "there was no synchronous standby")
        returned = time.monotonic()
        time.sleep(stage.seconds / 2)
    return returned


@cluster_fault("etcd-kill", "the leader of etcd killed (SIGKILL)", "it responds again")
def kill_etcd(stage: Stage) -> None:
    """Kill the leader of etcd; the others elect a new one."""
    parts = Parts(stage)
    ports = parts.cluster.etcd

    def leads(port: int) -> bool:
        found = _ask(port, "v3/maintenance/status", {})
        return found["header"]["member_id"] == found["leader"]

    name = next(name for name, port in ports.items() if leads(port))
    kill(parts.program(name))
    stage.wait_until(lambda: status(ports[name], "/health") == 200, f"{name} did not respond")


@cluster_fault("etcd-majority-freeze", "two of three members of etcd frozen", "they continue")
def freeze_etcd(stage: Stage) -> None:
    """Freeze the majority of etcd for longer than the lease of the primary."""
    parts = Parts(stage)
    names = list(parts.cluster.etcd)[1:]
    with frozen([process for name in names for process in parts.program(name)]):
        time.sleep(max(stage.seconds, 30))


@cluster_fault("squid-central-freeze", "the central Squid frozen", "it continues", program="squid-central")
@cluster_fault("squid-site-freeze", "the Squid of the site frozen", "it continues", program="squid-site")
@cluster_fault("host-freeze", "a host of the service frozen", "it continues", program="host-a")
@cluster_fault("haproxy-freeze", "HAProxy of a host frozen", "it continues", program="haproxy-a")
def freeze_program(stage: Stage, *, program: str) -> None:
    """Freeze a program with all its children."""
    with frozen(Parts(stage).program(program)):
        time.sleep(stage.seconds)


@cluster_fault("squid-central-kill", "the central Squid killed (SIGKILL)", "it gives answers", program="squid-central")
@cluster_fault("squid-site-kill", "the Squid of the site killed (SIGKILL)", "it gives answers", program="squid-site")
@cluster_fault("host-kill", "a host of the service killed (SIGKILL)", "it is ready again", program="host-a")
@cluster_fault("haproxy-kill", "HAProxy of a host killed (SIGKILL)", "its host is ready again", program="haproxy-a")
def kill_program(stage: Stage, *, program: str) -> None:
    """Kill a program with all its children; supervisord starts it again."""
    parts = Parts(stage)
    old = parts.program(program)
    kill(old)
    port = parts.cluster.site if "squid" in program else parts.cluster.hosts["a"]

    def is_back() -> bool:
        with contextlib.suppress(ServiceError):
            return parts.program(program)[0] != old[0] and status(port, "/health/ready") == 200
        return False

    stage.wait_until(is_back, f"{program} did not start again")


@cluster_fault("asynchronous-failover", "the primary killed, when its standbys lack its last writes", ANOTHER)
def fail_over_asynchronously(stage: Stage) -> float:
    """Kill the primary when both standbys lack acknowledged writes and a freeze.

    The rows that the new primary does not have are named. From then on no response may contain them.
    """
    parts, written = Parts(stage), stage.scene.written
    # After a restart of Patroni beside a running primary, PostgreSQL would remain synchronous.
    old = str(parts.synchronous())
    parts.make_primary(old)
    _settle(parts.cluster)
    database = parts.database(old)
    tag = f"{written.name}-lost"
    first, second = (insert_body(tag, written.payload_type(0), number, (number, 0)) for number in range(2))
    try:
        written.paused[0] = FREEZES
        time.sleep(PAUSE_SECONDS)
        parts.configure(is_synchronous=False)
        stage.wait_until(lambda: database.value("SHOW synchronous_standby_names") == "", "it remained synchronous")
        _until_ok(stage, 0, "POST", "gt", {"name": tag, "status": "unlocked"})
        _until_ok(stage, 0, "POST", "payload-iovs/insert", first)
        with contextlib.ExitStack() as patroni:
            senders = database.value("SELECT array_agg(pid) FROM pg_stat_replication")
            with frozen([psutil.Process(pid) for pid in senders]):
                written.survived[:] = written.acknowledged[:]
                _until_ok(stage, 0, "PUT", f"gt_change_status/{tag}/frozen")
                # All caches see the frozen tag.
                for number, path in itertools.product(range(len(stage.scene.hosts)), _paths(tag) * 2):
                    _until_ok(stage, number, "GET", path)
                time.sleep(LAG_SECONDS)
                written.paused[0] = ALL
                time.sleep(1)
                is_idle = lambda: written.attempted[:] == written.acknowledged[:]  # noqa: E731
                stage.wait_until(is_idle, "clients still wrote")
                patroni.enter_context(frozen(parts.program(old)))
                kill(parts.postgresql(old))
            returned = parts.wait_for_primary(other_than=old)
            new = parts.leader()
            _compare(stage, parts.database(new))
            written.paused[0] = FREEZES
            if parts.database(new).value(STATUS, [tag]) == "frozen":
                raise ServiceError("the freeze was not lost")
            stage.log.messages.append(f"lost by the cluster: the freeze of {tag}")
            _until_ok(stage, 1, "POST", "payload-iovs/insert", second)
            _read_lost(stage, tag, row_of(second))
    finally:
        parts.configure(is_synchronous=True)
        written.paused[0] = 0
    return returned


STATUS = 'SELECT s.name FROM "GlobalTag" t JOIN "GlobalTagStatus" s ON s.id = t.status_id WHERE t.name = %s'
LAST = """
    SELECT max(i.size) FROM "PayloadIOV" i JOIN "PayloadList" l ON l.id = i.payload_list_id
    JOIN "PayloadType" p ON p.id = l.payload_type_id JOIN "GlobalTag" t ON t.id = l.global_tag_id
    WHERE t.name = %s AND p.name = %s
"""


def _paths(tag: str) -> list[str]:
    return [lookup_path(tag, (5, 0)), f"globalTag/{tag}?light"]


def _until_ok(stage: Stage, number: int, *request: Any) -> None:
    client = stage.scene.client(number)
    stage.wait_until(lambda: stage.log.add(client, *request), f"no answer to {request}")


def _compare(stage: Stage, database: Database) -> None:
    """Note and name the rows that the new primary does not have."""
    written = stage.scene.written
    for writer, last in enumerate(written.acknowledged):
        kind = written.payload_type(writer)
        found = database.value(LAST, [written.name, kind])
        survived = -1 if found is None else int(found)
        written.survived[writer], written.gone[writer] = (survived, last) if survived < last else (NEVER, NEVER)
        if survived < last:
            stage.log.messages.append(f"lost by the cluster: {kind}/{survived + 1} to {kind}/{last}")


def _read_lost(stage: Stage, tag: str, row: list[Any]) -> None:
    """Read a tag whose freeze was lost, and which has a new row, through each address: none gives the lost state."""

    def check(response: Response) -> str | None:
        is_new = row in response.json if isinstance(response.json, list) else response.json["status"] != "frozen"
        return None if is_new else f"{STALE}: the lost state: {response.headers.get('cache-control')}: {response.json}"

    for host, path in itertools.product(stage.scene.hosts, _paths(tag) * 3):
        stage.log.add(Client(host, keep_alive=False, timeout=30), "GET", path, check=check)


@cluster_fault(
    "upgrade",
    "both hosts restarted one after the other with a new version, which has a migration",
    "the second one is ready",
)
def upgrade(stage: Stage) -> None:
    """Replace the code of a host, and some time later that of the other; meanwhile old code meets the new schema."""
    parts = Parts(stage)
    code = parts.cluster.directory / "next-version"
    shutil.copytree(ROOT, code, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    (code / ".venv").symlink_to(sys.prefix)
    last = max(path.stem for path in (ROOT / "cdb_rest" / "migrations").glob("0*.py"))
    (code / "cdb_rest" / "migrations" / "9999_chaos.py").write_text(MIGRATION.format(last=last))
    for host in HOSTS:
        parts.restart(f"host-{host}", f"directory = {code}\n")
        parts.wait_for_host(host)
        time.sleep(stage.seconds / 2)


@cluster_fault("disk-full", "no space on the primary's disk", PRIMARY + ", after there is space again")
def fill_disk(stage: Stage) -> float:
    """Fill the file system of the primary; with no space for WAL, PostgreSQL ends."""
    parts = Parts(stage)
    old = parts.leader()
    disk = parts.cluster.directory / old
    if not disk.is_mount():
        raise SkippedError("only root can mount a small file system")
    filling = disk / "filling"
    try:
        with contextlib.suppress(OSError), filling.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
        time.sleep(stage.seconds / 2)
        # WAL files that are there already can be used; the next ones do not exist.
        for _ in range(4):
            with contextlib.suppress(Exception):
                parts.database(old).run("CREATE TEMP TABLE t (i int); DROP TABLE t; SELECT pg_switch_wal()")
        time.sleep(stage.seconds / 2)
    finally:
        filling.unlink()
    return parts.wait_for_primary()


@cluster_fault(
    "clock-host", "the clock of a host of the service jumps by hours", "its clock is right", program="host-b"
)
@cluster_fault("clock-primary", "the clock of the primary jumps by hours, with its Patroni", PRIMARY)
def shift_clock(stage: Stage, *, program: str = "") -> float | None:
    """Restart a program so that its clock can be set, and set it ahead, back and right."""
    parts = Parts(stage)
    [*libraries] = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    if not libraries:
        raise SkippedError("faketime is not installed")
    chosen = program or str(parts.synchronous())
    clock = parts.cluster.directory / f"clock-{chosen}"
    clock.write_text("+0")
    clock.chmod(0o644)
    section = (parts.cluster.directory / "supervisord.conf").read_text().partition(f"[program:{chosen}]\n")[2]
    environment = next(line for line in section.splitlines() if line.startswith("environment = "))
    fake = f'LD_PRELOAD="{libraries[0]}",FAKETIME_TIMESTAMP_FILE="{clock}",FAKETIME_CACHE_DURATION="1"'
    parts.restart(chosen, f'{environment},{fake},FAKETIME_DONT_FAKE_MONOTONIC="1"\n')
    try:
        if program:
            parts.wait_for_host(program.removeprefix("host-"))
        else:
            _settle(parts.cluster)
            # A synchronous cluster switches over to its synchronous standby only.
            parts.configure(is_synchronous=False)
            parts.make_primary(chosen)
            parts.configure(is_synchronous=True)
            _settle(parts.cluster)
        for seconds in CLOCK_SECONDS:
            clock.write_text(seconds)
            time.sleep(stage.seconds / 2)
    finally:
        clock.write_text("+0")
        parts.restart(chosen, "")
    if program:
        parts.wait_for_host(program.removeprefix("host-"))
        return None
    return parts.wait_for_primary()
