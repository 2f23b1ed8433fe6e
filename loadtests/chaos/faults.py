"""The faults. Each function injects and removes one, and returns when the failed component was back (`Fault`)."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections import Counter

import psutil

from loadtests import usage, wrk
from loadtests.chaos.clients import SLOW_CONNECTIONS, ClientProcesses, Loop, be_slow, leave, read_nested
from loadtests.chaos.log import ANSWERED, DROPPED, WRONG
from loadtests.chaos.stage import SkippedError, Stage, fault
from loadtests.client import Client
from loadtests.recording import REFUSED
from loadtests.service import ServiceError, frozen, kill, python

KILLS = 3
FLOOD_CONNECTIONS = 4000
STORM_CLIENTS = 40
SLOW_CLIENTS = 4
LEAVERS = 20
BACKEND = "SELECT min(pid) FROM pg_stat_activity WHERE usename = 'cdb' AND pid <> pg_backend_pid()"
POSTGRESQLS_RETURN = "PostgreSQL executes a statement on a new connection"
# The programs that answer requests.
SERVERS = ("granian", "gunicorn")


@fault("none", "no fault", "the end")
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
def freeze_postgresql(stage: Stage) -> None:
    """Freeze PostgreSQL: the kernel accepts connections, but nothing responds, as with a broken network."""
    with frozen(stage.databases()):
        time.sleep(stage.seconds)


@fault("worker-kill", f"a worker of granian and of gunicorn killed (SIGKILL), {KILLS} times", "the last kill")
def kill_workers(stage: Stage) -> float:
    """Kill one worker of granian and of gunicorn, several times; their main processes start others."""
    for number in range(KILLS):
        time.sleep(1 if number else 0)
        for program in SERVERS:
            stage.wait_until(lambda name=program: _kill_worker(stage, name), f"{program} has no worker")
    return time.monotonic()


def _kill_worker(stage: Stage, program: str) -> bool:
    """Kill the oldest worker of granian or gunicorn; False if none runs. granian takes two ends of one worker for a loop."""
    for process in sorted(stage.service.program(program).children(), key=psutil.Process.create_time):
        # One that was killed before may not have been waited for yet, and has no command line then.
        with contextlib.suppress(psutil.Error):
            # granian has a process for resources of Python besides its workers.
            if "resource_tracker" not in " ".join(process.cmdline()):
                process.kill()
                return True
    return False


@fault("master-kill", "the main processes of granian and gunicorn killed (SIGKILL)", "both answer again")
def kill_masters(stage: Stage) -> None:
    """Kill the main process of granian and that of gunicorn; supervisord starts both again."""
    _kill_programs(stage, *SERVERS)
    client, paths = Client(stage.service.host, keep_alive=False, timeout=30), ("gtstatus", "gt?page=1")
    stage.wait_until(
        lambda: all(client.request("GET", path).status == 200 for path in paths), "granian or gunicorn did not answer"
    )


@fault("nginx-kill", "the main process of nginx killed (SIGKILL)", "nginx has workers again", ends_connections=True)
def kill_nginx(stage: Stage) -> None:
    """Kill the main process of nginx; its workers end with it, and supervisord starts it again."""
    _kill_programs(stage, "nginx")


@fault("compiler-kill", "the compiler killed (SIGKILL)", "it runs again")
def kill_compiler(stage: Stage) -> None:
    """Kill the process that compiles tags; supervisord starts it again."""
    _kill_programs(stage, "compiler", has_workers=False)


def _kill_programs(stage: Stage, *names: str, has_workers: bool = True) -> None:
    old = [stage.service.program(name) for name in names]
    for process in old:
        process.kill()

    def are_back() -> bool:
        with contextlib.suppress(ServiceError, psutil.Error):
            new = [stage.service.program(name) for name in names]
            return not set(new) & set(old) and all(process.children() or not has_workers for process in new)
        return False

    stage.wait_until(are_back, f"{' and '.join(names)} did not start again")


@fault("nginx-reload", f"nginx reloaded {KILLS} times", "the last signal")
def reload_nginx(stage: Stage) -> None:
    """Reload nginx several times: new worker processes replace the old ones."""
    for number in range(KILLS):
        time.sleep(1 if number else 0)
        stage.service.program("nginx").send_signal(signal.SIGHUP)


@fault("reload", "make reload: new processes of granian, gunicorn and the compiler", "the command ends")
def reload(stage: Stage) -> None:
    """Reload the service, which replaces the processes that run its code."""
    # Another port would be applied.
    settings = stage.service.settings.having(PORT=str(stage.service.port))
    python(settings, "-m", "cdb.serving.reload")


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


@fault("overload", "several times more lookups than the service can handle", "the last lookup", has_clients=True)
def overload(stage: Stage) -> float:
    """Send lookups, all different, from thousands of connections."""
    if shutil.which("wrk") is None:
        raise SkippedError("wrk is not installed")
    url = stage.service.url(f"payloadiovs/?gtName={stage.scene.written.name}")
    load = wrk.measure(url, seconds=round(stage.seconds), connections=FLOOD_CONNECTIONS)
    returned = time.monotonic()
    others = Counter(load["statuses"])
    refused = others.pop(504, 0)
    answered = load["requests"] - refused - others.total()
    counts = {ANSWERED: answered, REFUSED: refused, DROPPED: load["broken"], WRONG: others.total()}
    stage.log.counted += Counter(counts)
    return returned


STORM = f"{STORM_CLIENTS} clients that read a whole tag at the same time"
SLOW = f"{4 * SLOW_CLIENTS * SLOW_CONNECTIONS} connections that send or read slowly, or send nothing"
LEAVING = f"{LEAVERS} clients that disconnect half-way"


@fault("hostile-slow", SLOW, "the last request", loop=be_slow, number=SLOW_CLIENTS, has_clients=True)
@fault("leavers", LEAVING, "the last request", loop=leave, number=LEAVERS, has_clients=True)
@fault("storm", STORM, "the last request", loop=read_nested, number=STORM_CLIENTS, pause=0.0, has_clients=True)
def crowd(stage: Stage, *, loop: Loop, number: int, pause: float = 0.02) -> None:
    """Start more clients, which run a loop."""
    clients = ClientProcesses(stage.scene, [[(loop, place, pause) for place in range(number)]])
    time.sleep(stage.seconds)
    stage.log.join(clients.finish())
