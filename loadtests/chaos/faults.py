"""The faults. Each is a function that injects and removes the fault, and returns when the failed component was back.

The time of recovery is measured from that moment, by `time.monotonic`.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence

import psutil

from loadtests import wrk
from loadtests.chaos.clients import ClientProcesses, Loop, leave, read_nested
from loadtests.chaos.log import ANSWERED, DROPPED, REFUSED, WRONG
from loadtests.chaos.stage import Fault, SkippedError, Stage
from loadtests.service import ServiceError, frozen, kill

KILLS = 3
FLOOD_CONNECTIONS = 4000
STORM_CLIENTS = 40
LEAVERS = 20
# How long a stopped replica is down.
DOWN_SECONDS = 3
LATER = ("--settings", "loadtests.chaos.later.settings")


def nothing(stage: Stage) -> float:
    """Inject no fault, for comparison."""
    time.sleep(stage.seconds)
    return time.monotonic()


def restart_postgresql(stage: Stage) -> float:
    """Shut PostgreSQL down (fast); the service starts it again."""
    first = stage.databases()[0]
    first.send_signal(signal.SIGINT)
    psutil.wait_procs([first], timeout=30)
    return _database_is_back(stage)


def kill_postgresql(stage: Stage) -> float:
    """Kill all processes of PostgreSQL at once, as a power failure does; it recovers from its WAL."""
    kill(stage.databases())
    return _database_is_back(stage)


def kill_backend(stage: Stage) -> float:
    """Kill one backend: PostgreSQL ends all other backends and recovers by itself."""
    backends = []
    for process in stage.databases():
        with contextlib.suppress(psutil.Error):
            backends += [process] if "cdb cdb" in " ".join(process.cmdline()) else []
    if not backends:
        raise ServiceError("PostgreSQL has no backend")
    backends[0].kill()
    time.sleep(0.1)
    return _database_is_back(stage)


def _database_is_back(stage: Stage) -> float:
    stage.wait_until(stage.database.responds, "PostgreSQL did not respond")
    return time.monotonic()


def freeze_postgresql(stage: Stage) -> float:
    """Freeze PostgreSQL: the kernel accepts connections, but nothing responds, as with a broken network."""
    with frozen(stage.databases()):
        return nothing(stage)


def restart_pgbouncer(stage: Stage) -> float:
    """Terminate PgBouncer (SIGTERM); the service starts it again."""
    return _end_pooler(stage, signal.SIGTERM)


def kill_pgbouncer(stage: Stage) -> float:
    """Kill PgBouncer; the service starts it again."""
    return _end_pooler(stage, signal.SIGKILL)


def _end_pooler(stage: Stage, number: signal.Signals) -> float:
    [pooler] = stage.service.program("pgbouncer")
    pooler.send_signal(number)
    psutil.wait_procs([pooler], timeout=30)
    stage.wait_until(stage.pooled_database.responds, "PgBouncer did not respond")
    return time.monotonic()


def kill_workers(stage: Stage) -> float:
    """Kill one worker of each gunicorn instance, several times; its master starts another."""
    for number in range(KILLS):
        time.sleep(1 if number else 0)
        for master in stage.service.program("gunicorn"):
            master.children()[0].kill()
    return time.monotonic()


def kill_masters(stage: Stage) -> float:
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
    return time.monotonic()


def reload_nginx(stage: Stage) -> float:
    """Reload nginx several times: new worker processes replace the old ones."""
    for number in range(KILLS):
        time.sleep(1 if number else 0)
        [master] = stage.service.program("nginx")
        master.send_signal(signal.SIGHUP)
    return time.monotonic()


def deploy(stage: Stage) -> float:
    """Send SIGHUP to the service, which replaces all its processes, one program after the other."""
    begin, before = time.monotonic(), len(stage.service.lines)
    stage.service.process.send_signal(signal.SIGHUP)

    def is_reloaded() -> bool:
        return any(line.startswith("Reloaded:") for line in stage.service.lines[before:])

    stage.wait_until(is_reloaded, "the service did not reload")
    return begin


def fill_disk(stage: Stage) -> float:
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
    return time.monotonic()


def overload(stage: Stage) -> float:
    """Send several times more lookups than the service can handle, all different, from thousands of connections."""
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


def storm(stage: Stage) -> float:
    """Start many clients that read a whole tag at the same time."""
    return _crowd(stage, [(read_nested, number, 0.0) for number in range(STORM_CLIENTS)])


def leave_early(stage: Stage) -> float:
    """Start clients that disconnect in the middle of a request or of a response."""
    return _crowd(stage, [(leave, number, 0.02) for number in range(LEAVERS)])


def _crowd(stage: Stage, clients: Sequence[tuple[Loop, int, float]]) -> float:
    processes = ClientProcesses(stage.scene, [clients])
    time.sleep(stage.seconds)
    stage.log.join(processes.finish())
    return time.monotonic()


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


def kill_replica(stage: Stage) -> float:
    """Kill all processes of the replica at once; it is started again and catches up."""
    stage.standby.kill()
    return _start_replica(stage)


def stop_replica(stage: Stage) -> float:
    """Shut the replica down and start it again."""
    stage.standby.stop()
    return _start_replica(stage)


def _start_replica(stage: Stage) -> float:
    time.sleep(DOWN_SECONDS)
    stage.standby.start()
    return time.monotonic()


def freeze_replica(stage: Stage) -> float:
    """Freeze the replica: the kernel accepts connections, but nothing responds."""
    with stage.standby.frozen():
        return nothing(stage)


def pause_replay(stage: Stage) -> float:
    """Pause replay on the replica, which still receives WAL, and then resume it."""
    with stage.standby.replay_paused():
        return nothing(stage)


ITS_RETURN = "PostgreSQL executes a statement on a new connection"
FAULTS = [
    Fault("none", "no fault", "the end", nothing),
    Fault("postgresql-restart", "PostgreSQL shut down (fast) and started again", ITS_RETURN, restart_postgresql),
    Fault("postgresql-kill", "all processes of PostgreSQL killed (SIGKILL)", ITS_RETURN, kill_postgresql),
    Fault("backend-kill", "one PostgreSQL backend killed (SIGKILL)", ITS_RETURN, kill_backend),
    Fault("postgresql-freeze", "PostgreSQL frozen, as if unreachable", "it continues", freeze_postgresql),
    Fault("pgbouncer-restart", "PgBouncer terminated and started again", "it executes a statement", restart_pgbouncer),
    Fault("pgbouncer-kill", "PgBouncer killed (SIGKILL)", "it executes a statement", kill_pgbouncer),
    Fault("worker-kill", f"a worker of each gunicorn killed (SIGKILL), {KILLS} times", "the last kill", kill_workers),
    Fault("master-kill", "both gunicorn masters killed (SIGKILL)", "both have workers again", kill_masters),
    Fault("nginx-reload", f"nginx reloaded {KILLS} times", "the last signal", reload_nginx),
    Fault("deploy", "SIGHUP: rolling restart of the whole service", "the signal", deploy),
    Fault("disk-full", "no space in the directory of the cache", "there is space", fill_disk),
    Fault("overload", "several times more lookups than the service can handle", "the last lookup", overload),
    Fault("storm", f"{STORM_CLIENTS} clients that read a whole tag at the same time", "the last request", storm),
    Fault("leavers", f"{LEAVERS} clients that disconnect half-way", "the last request", leave_early),
    Fault("migration", "a migration that waits for a long read transaction", "the transaction ends", migrate),
]
KILLED, FROZEN = "the primary killed (SIGKILL), the replica not", "the primary frozen, the replica not"
PRIMARYS_RETURN = "the primary executes a statement on a new connection"
REPLICA_FAULTS = [
    Fault("replica", "no fault, reading from a streaming replica", "the end", nothing, True),
    Fault("replica-kill", "the replica killed (SIGKILL) and started again", "its start", kill_replica, True),
    Fault("replica-restart", "the replica shut down and started again", "its start", stop_replica, True),
    Fault("replica-freeze", "the replica frozen, as if unreachable", "it continues", freeze_replica, True),
    Fault("replica-lag", "replay paused on the replica", "replay resumes", pause_replay, True),
    Fault("primary-freeze", FROZEN, "the primary continues", freeze_postgresql, True),
    Fault("primary-kill", KILLED, PRIMARYS_RETURN, kill_postgresql, True),
]
