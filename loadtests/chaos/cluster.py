"""The faults of a cluster, as `make cluster` starts it, and the cluster itself (`make chaos CLUSTER=1`)."""

import contextlib
import http.client
import itertools
import json
import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from cdb.env import ROOT
from deploy.cluster.local import ETCDS, HOSTS, SERVERS, Cluster, primary, status
from loadtests import usage
from loadtests.chaos.faults import nothing
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
# Longer than a client needs to change its tags and to read them everywhere.
PAUSE_SECONDS = 15
# PostgreSQL of each host has its own small file system, which can be full.
DISK_BYTES = 3 << 30
CLOCK_SECONDS = ("+3600", "-7200", "+0")
PRIMARY, STANDBY = "Patroni shows a primary, and it executes statements", "Patroni shows a synchronous standby"
OTHER, OTHER_STANDBY = "Patroni shows another primary", "Patroni shows another synchronous standby"
BOTH = PATRONI, POSTGRESQL = "patroni", "postgresql"
# Longer than the primary keeps its role without etcd.
LEASE_SECONDS = 30
# A part of the code of the next version.
MIGRATION = """from django.db import migrations
class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "{last}")]
    operations = [migrations.RunSQL('ALTER TABLE "PayloadIOV" ADD COLUMN chaos text')]
"""
NOT_COPIED = (".git", ".venv", ".tools", "var", "__pycache__", "tests", ".*_cache", ".hypothesis")
OPTIONS: dict[str, Any] = {
    "into": CLUSTER_FAULTS,
    "ends_connections": True,
    "has_clients": True,
    "recovery_seconds": 3.0,
}


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
            yield Place(service, commands, hosts, lambda: _settle(cluster))
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


def _settle(cluster: Cluster) -> None:
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


def cluster_fault(name: str, what: str, since: str, **options: Any) -> Callable[[Any], Any]:
    """A decorator that adds a fault, whose cause is the function with the parts of the cluster and these options."""

    def add(cause: Callable[..., float | None]) -> Callable[..., float | None]:
        fault(name, what, since, **OPTIONS)(lambda stage: cause(Parts(stage), **options))
        return cause

    return add


fault("none", "no fault", "the end", **OPTIONS)(nothing)


@cluster_fault("switchover", "switchover by Patroni", OTHER)
def switch_over(parts: Parts) -> float:
    """Give the role of the primary to the synchronous standby."""
    return parts.make_primary(str(parts.synchronous()))


@cluster_fault("patroni-kill", "Patroni of the primary killed", PRIMARY, killed=PATRONI)
@cluster_fault("patroni-freeze", "Patroni of the primary frozen, its PostgreSQL not", OTHER, stopped=[PATRONI])
@cluster_fault("primary-power", "the primary killed, its Patroni frozen", OTHER, killed=POSTGRESQL, stopped=[PATRONI])
@cluster_fault("primary-freeze", "the primary and its Patroni frozen", OTHER, stopped=BOTH)
@cluster_fault("primary-kill", "PostgreSQL of the primary killed", PRIMARY, killed=POSTGRESQL)
def lose_primary(parts: Parts, *, killed: str = "", stopped: Sequence[str] = ()) -> float:
    """Lose the primary. With its Patroni, another one follows; otherwise Patroni may start it again."""
    old = parts.leader()
    others = [name for name in SERVERS if not stopped or name != old]
    return parts.lose(old, killed, stopped, lambda: any(map(parts.is_primary, others)))


@cluster_fault("standby-kill", "PostgreSQL of the synchronous standby killed", STANDBY, killed=POSTGRESQL)
@cluster_fault("standby-freeze", "the synchronous standby and its Patroni frozen", OTHER_STANDBY, stopped=BOTH)
def lose_standby(parts: Parts, *, killed: str = "", stopped: Sequence[str] = ()) -> float:
    """Lose the synchronous standby; Patroni makes another one synchronous."""
    old = str(parts.synchronous())
    return parts.lose(old, killed, stopped, lambda: parts.synchronous() not in (None, *([old] if stopped else [])))


@cluster_fault("squid-central-freeze", "the central Squid frozen", "it continues", programs=["squid-central"])
@cluster_fault("squid-site-freeze", "the Squid of the site frozen", "it continues", programs=["squid-site"])
@cluster_fault("host-freeze", "a host of the service frozen", "it continues", programs=["host-a"])
@cluster_fault("haproxy-freeze", "HAProxy of a host frozen", "it continues", programs=["haproxy-a"])
@cluster_fault(
    "etcd-majority-freeze", "two of three etcd frozen", "they continue", programs=ETCDS[1:], least=LEASE_SECONDS
)
def freeze_programs(parts: Parts, *, programs: Sequence[str], least: float = 0) -> None:
    """Freeze programs with all their children."""
    with frozen([process for name in programs for process in parts.program(name)]):
        time.sleep(max(parts.seconds, least))


@cluster_fault("squid-central-kill", "the central Squid killed", "it responds", programs=["squid-central"])
@cluster_fault("squid-site-kill", "the Squid of the site killed", "it responds", programs=["squid-site"])
@cluster_fault("host-kill", "a host of the service killed", "it is ready again", programs=["host-a"])
@cluster_fault("haproxy-kill", "HAProxy of a host killed", "its host is ready again", programs=["haproxy-a"])
@cluster_fault("etcd-kill", "each etcd killed in turn", "the last one responds", programs=ETCDS)
def kill_programs(parts: Parts, *, programs: Sequence[str]) -> None:
    """Kill programs with all their children, one after the other; supervisord starts each again."""
    for name in programs:
        old = parts.program(name)
        kill(old)
        parts.wait_until(partial(parts.is_back, name, old[0]), f"{name} did not start again")


@cluster_fault("asynchronous-failover", "the primary killed, when its standbys lack its last writes", OTHER)
def fail_over_asynchronously(parts: Parts) -> float:
    """Kill the primary when both standbys lack acknowledged writes and a freeze.

    The rows that the new primary does not have are named. From then on no response may contain them.
    """
    stage, written = parts.stage, parts.stage.scene.written
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
                patroni.enter_context(parts.frozen(old, [PATRONI]))
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


@cluster_fault("upgrade", "new code with a migration on one host, then on the other", "the second host is ready")
def upgrade(parts: Parts) -> None:
    """Replace the code of a host, and some time later that of the other; meanwhile old code meets the new schema."""
    code = parts.cluster.directory / "next-version"
    shutil.copytree(ROOT, code, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    (code / ".venv").symlink_to(sys.prefix)
    last = max(path.stem for path in (ROOT / "cdb_rest" / "migrations").glob("0*.py"))
    (code / "cdb_rest" / "migrations" / "9999_chaos.py").write_text(MIGRATION.format(last=last))
    for host in HOSTS:
        parts.restart(f"host-{host}", f"directory = {code}\n")
        parts.wait_for_host(host)
        time.sleep(parts.seconds / 2)


@cluster_fault("disk-full", "no space on the primary's disk", f"there is space, and {PRIMARY}")
def fill_disk(parts: Parts) -> float:
    """Fill the file system of the primary; with no space for WAL, PostgreSQL ends."""
    old = parts.leader()
    disk = parts.cluster.directory / old
    if not disk.is_mount():
        raise SkippedError("only root can mount a small file system")
    filling = disk / "filling"
    try:
        with contextlib.suppress(OSError), filling.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
        time.sleep(parts.seconds / 2)
        # WAL files that are there already can be used; the next ones do not exist.
        for _ in range(4):
            with contextlib.suppress(Exception):
                parts.database(old).run("CREATE TEMP TABLE t (i int); DROP TABLE t; SELECT pg_switch_wal()")
        time.sleep(parts.seconds / 2)
    finally:
        filling.unlink()
    return parts.wait_for_primary()


@cluster_fault("clock-host", "the clock of a host jumps by hours", "its clock is right", program="host-b")
@cluster_fault("clock-primary", "the clock of the primary and its Patroni jumps by hours", PRIMARY)
def shift_clock(parts: Parts, *, program: str = "") -> float | None:
    """Restart a program so that its clock can be set, and set it ahead, back and right."""
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
        _settle(parts.cluster)
        if not program:
            # A synchronous cluster switches over to its synchronous standby only.
            parts.configure(is_synchronous=False)
            parts.make_primary(chosen)
            parts.configure(is_synchronous=True)
            _settle(parts.cluster)
        for seconds in CLOCK_SECONDS:
            clock.write_text(seconds)
            time.sleep(parts.seconds / 2)
    finally:
        clock.write_text("+0")
        parts.restart(chosen, "")
    if program:
        parts.wait_for_host(program.removeprefix("host-"))
        return None
    return parts.wait_for_primary()
