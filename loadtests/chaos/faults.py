"""The faults. Each function injects and removes one, and returns when the failed component was back (`Fault`)."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable

import psutil

from loadtests import usage, wrk
from loadtests.chaos.clients import ClientProcesses, Loop, leave, read_nested
from loadtests.chaos.log import ANSWERED, DROPPED, REFUSED, WRONG
from loadtests.chaos.stage import SkippedError, Stage, fault
from loadtests.service import ServiceError, frozen, kill
from loadtests.standby import Standby

KILLS = 3
FLOOD_CONNECTIONS = 4000
STORM_CLIENTS = 40
LEAVERS = 20
# How long a stopped replica is down.
DOWN_SECONDS = 3
BACKEND = "SELECT min(pid) FROM pg_stat_activity WHERE usename = 'cdb' AND pid <> pg_backend_pid()"
LATER = ("--settings", "loadtests.chaos.later.settings")
POSTGRESQLS_RETURN = "PostgreSQL executes a statement on a new connection"
PRIMARYS_RETURN = "the primary executes a statement on a new connection"
POOLERS_RETURN = "it executes a statement"


@fault("none", "no fault", "the end")
@fault("replica", "no fault, reading from a streaming replica", "the end", with_replica=True)
def nothing(stage: Stage) -> None:
    """Inject no fault, for comparison."""
    time.sleep(stage.seconds)


@fault("postgresql-restart", "PostgreSQL shut down (fast) and started again", POSTGRESQLS_RETURN)
def restart_postgresql(stage: Stage) -> None:
    """Shut PostgreSQL down; the service starts it again."""
    first = usage.postmaster(stage.data / "postgres" / "data")
    first.send_signal(signal.SIGINT)
    psutil.wait_procs([first], timeout=30)
    _wait_for_database(stage)


@fault("postgresql-kill", "all processes of PostgreSQL killed (SIGKILL)", POSTGRESQLS_RETURN)
@fault("primary-kill", "the primary killed (SIGKILL), the replica not", PRIMARYS_RETURN, with_replica=True)
def kill_postgresql(stage: Stage) -> None:
    """Kill PostgreSQL as a power failure does; it recovers from its WAL."""
    kill(stage.databases())
    _wait_for_database(stage)


@fault("backend-kill", "one PostgreSQL backend killed (SIGKILL)", POSTGRESQLS_RETURN)
def kill_backend(stage: Stage) -> None:
    """Kill one backend: PostgreSQL ends all other backends and recovers by itself."""
    if (backend := stage.database.value(BACKEND)) is None:
        raise ServiceError("PostgreSQL has no backend")
    psutil.Process(backend).kill()
    time.sleep(0.1)
    _wait_for_database(stage)


def _wait_for_database(stage: Stage) -> None:
    stage.wait_until(stage.database.responds, "PostgreSQL did not respond")


@fault("postgresql-freeze", "PostgreSQL frozen, as if unreachable", "it continues")
@fault("primary-freeze", "the primary frozen, the replica not", "the primary continues", with_replica=True)
def freeze_postgresql(stage: Stage) -> None:
    """Freeze PostgreSQL: the kernel accepts connections, but nothing responds, as with a broken network."""
    with frozen(stage.databases()):
        time.sleep(stage.seconds)


@fault("pgbouncer-kill", "PgBouncer killed (SIGKILL)", POOLERS_RETURN, number=signal.SIGKILL)
@fault("pgbouncer-restart", "PgBouncer terminated and started again", POOLERS_RETURN, number=signal.SIGTERM)
def end_pooler(stage: Stage, number: signal.Signals) -> None:
    """Send a signal to PgBouncer; the service starts it again."""
    [pooler] = stage.service.program("pgbouncer")
    pooler.send_signal(number)
    psutil.wait_procs([pooler], timeout=30)
    stage.wait_until(stage.pooled_database.responds, "PgBouncer did not respond")


@fault("worker-kill", f"a worker of each gunicorn killed (SIGKILL), {KILLS} times", "the last kill")
def kill_workers(stage: Stage) -> float:
    """Kill one worker of each gunicorn instance, several times; its master starts another."""
    for number in range(KILLS):
        time.sleep(1 if number else 0)
        for master in stage.service.program("gunicorn"):
            master.children()[0].kill()
    return time.monotonic()


@fault("master-kill", "both gunicorn masters killed (SIGKILL)", "both have workers again")
def kill_masters(stage: Stage) -> None:
    """Kill the master of each gunicorn instance; the service starts both again."""
    old = stage.service.program("gunicorn")
    for master in old:
        master.kill()

    def have_workers() -> bool:
        with contextlib.suppress(ServiceError, psutil.Error):
            new = [master for master in stage.service.program("gunicorn") if master not in old]
            return len(new) == len(old) and all(master.children() for master in new)
        return False

    stage.wait_until(have_workers, "gunicorn was not started again")


@fault("nginx-reload", f"nginx reloaded {KILLS} times", "the last signal")
def reload_nginx(stage: Stage) -> None:
    """Reload nginx several times: new worker processes replace the old ones."""
    for number in range(KILLS):
        time.sleep(1 if number else 0)
        [master] = stage.service.program("nginx")
        master.send_signal(signal.SIGHUP)


@fault("deploy", "SIGHUP: rolling restart of the whole service", "the signal")
def deploy(stage: Stage) -> float:
    """Send SIGHUP to the service, which replaces all its processes, one program after the other."""
    begin, before = time.monotonic(), len(stage.service.lines)
    stage.service.process.send_signal(signal.SIGHUP)
    stage.wait_until(
        lambda: any(line.startswith("Reloaded:") for line in stage.service.lines[before:]),
        "the service did not reload",
    )
    return begin


@fault("disk-full", "no space in the directory of the cache", "there is space")
def fill_disk(stage: Stage) -> None:
    """Mount a full file system over the directory of nginx's cache."""
    cache = stage.data / "serve" / "cache"
    if os.geteuid() != 0:
        raise SkippedError("only root can mount a small file system")
    owner = cache.stat()
    options = f"size=1m,mode=0700,uid={owner.st_uid},gid={owner.st_gid}"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", cache]
    mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    if mounted.returncode:
        raise SkippedError(f"cannot mount a small file system: {mounted.stderr.strip()}")
    try:
        with contextlib.suppress(OSError), (cache / "filling").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        if shutil.disk_usage(cache).free:
            raise ServiceError("the file system is not full")
        time.sleep(stage.seconds)
    finally:
        subprocess.run(["umount", "--lazy", cache], check=True)


@fault("overload", "several times more lookups than the service can handle", "the last lookup")
def overload(stage: Stage) -> float:
    """Send lookups, all different, from thousands of connections."""
    if shutil.which("wrk") is None:
        raise SkippedError("wrk is not installed")
    url, seconds = stage.service.lookup_url(stage.scene.written.name), round(stage.seconds)
    load = wrk.run(url, seconds=seconds, connections=FLOOD_CONNECTIONS, count_statuses=True)
    returned = time.monotonic()
    statuses = Counter(load.statuses)
    answered, refused = statuses.pop(200, 0), statuses.pop(504, 0)
    counts = {ANSWERED: answered, REFUSED: refused, DROPPED: load.broken + load.timeouts, WRONG: statuses.total()}
    stage.log.counted += Counter(counts)
    stage.log.slowest = load.max / 1000
    return returned


STORM = f"{STORM_CLIENTS} clients that read a whole tag at the same time"
LEAVING = f"{LEAVERS} clients that disconnect half-way"


@fault("leavers", LEAVING, "the last request", loop=leave, number=LEAVERS)
@fault("storm", STORM, "the last request", loop=read_nested, number=STORM_CLIENTS, pause=0.0)
def crowd(
    stage: Stage, *, loop: Loop, number: int, pause: float = 0.02, during: Callable[[Stage], float] | None = None
) -> float | None:
    """Start more clients, which run a loop; the fault `during`, if given, is injected again and again meanwhile."""
    clients = ClientProcesses(stage.scene, [[(loop, place, pause) for place in range(number)]])
    returned, deadline = None, time.monotonic() + stage.seconds
    while during and time.monotonic() < deadline - 2:
        time.sleep(1)
        returned = during(stage)
    time.sleep(max(0.0, deadline - time.monotonic()))
    stage.log.join(clients.finish())
    return returned


@fault("migration", "a migration that waits for a long read transaction", "the transaction ends")
def migrate(stage: Stage) -> float:
    """Run a migration that changes the table of tags, while a transaction that has read the table stays open."""
    with stage.database.connect(autocommit=False) as reader:
        reader.cursor().execute('SELECT FROM "GlobalTag"')
        migration = stage.manage("migrate", *LATER)
        waited = any("A table is in use" in line for line in migration.stdout)
        time.sleep(stage.seconds)
        reader.rollback()
    returned = time.monotonic()
    output, _ = migration.communicate(timeout=120)
    if migration.returncode or not waited:
        raise ServiceError(f"the migration did not wait, or failed: {output}")
    # Reversed, so that later faults have the same tables.
    if stage.manage("migrate", *LATER, "later", "zero").wait(120):
        raise ServiceError("the migration could not be reversed")
    return returned


@fault("replica-restart", "the replica shut down and started again", "its start", with_replica=True, end=Standby.stop)
@fault(
    "replica-kill", "the replica killed (SIGKILL) and started again", "its start", with_replica=True, end=Standby.kill
)
def restart_replica(stage: Stage, end: Callable[[Standby], None]) -> None:
    """End the replica, and start it again after some seconds; it catches up."""
    end(stage.standby)
    time.sleep(DOWN_SECONDS)
    stage.standby.start()


@fault("replica-lag", "replay paused on the replica", "replay resumes", with_replica=True, block=Standby.replay_paused)
@fault(
    "replica-freeze", "the replica frozen, as if unreachable", "it continues", with_replica=True, block=Standby.frozen
)
def hinder_replica(stage: Stage, block: Callable[[Standby], contextlib.AbstractContextManager]) -> None:
    """Freeze the replica, or pause replay while it still receives WAL."""
    with block(stage.standby):
        time.sleep(stage.seconds)
