"""The faults of a cluster (`make chaos CLUSTER=1`)."""

import contextlib
import itertools
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from cdb.env import ROOT
from deploy.cluster.local import ETCDS, HOSTS, SERVERS
from loadtests.chaos.cluster import BOTH, PATRONI, POSTGRESQL, Parts, settle
from loadtests.chaos.faults import nothing
from loadtests.chaos.oracle import ALL, FREEZES, NEVER, STALE
from loadtests.chaos.stage import CLUSTER_FAULTS, SkippedError, Stage, fault
from loadtests.client import Client, Response, lookup_path
from loadtests.content.expected import insert_body, row_of
from loadtests.harness import Database
from loadtests.service import ServiceError, frozen, kill

# A standby is cut off this long before an asynchronous failover.
LAG_SECONDS = 3
# Longer than a client needs to change its tags and to read them everywhere.
PAUSE_SECONDS = 15
CLOCK_SECONDS = ("+3600", "-7200", "+0")
PRIMARY, STANDBY = "Patroni shows a primary, and it executes statements", "Patroni shows a synchronous standby"
OTHER, OTHER_STANDBY = "Patroni shows another primary", "Patroni shows another synchronous standby"
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
    settle(parts.cluster)
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
        settle(parts.cluster)
        if not program:
            # A synchronous cluster switches over to its synchronous standby only.
            parts.configure(is_synchronous=False)
            parts.make_primary(chosen)
            parts.configure(is_synchronous=True)
            settle(parts.cluster)
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
