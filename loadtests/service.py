"""The child processes of the harness: programs that run to their end, commands of manage.py, and the service itself."""

import contextlib
import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from cdb.env import ROOT

START_SECONDS = 120
STOP_SECONDS = 60
CHECK_INTERVAL_SECONDS = 0.02
PORTS, PORT_TRIES = (20_000, 32_000), 100
PREFIX = "/api/cdb_rest/"
INTERRUPTED = 128 + signal.SIGINT
# Prefixes of environment variables that must not leak in from the operator's shell.
HIDDEN = ("CDB_", "DATABASE_URL", "PORT", "SCENARIO", "DEBUG", "PG", "DJANGO_", "MAKE", "MFLAGS")


class ServiceError(Exception):
    """The service or another program failed or is not installed; the message has the end of its output or its package."""


def prepare_process() -> None:
    """Handle SIGTERM and SIGHUP like Ctrl-C, and remove libpq's variables (PG…) from the environment.

    libpq's variables could redirect connections.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]


@dataclass(frozen=True)
class Settings:
    """The data directory of an instance, and its other settings as environment variables."""

    data: Path
    extra: dict[str, str]

    def environment(self, **more: str) -> dict[str, str]:
        """The complete environment of a process."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(HIDDEN)}
        fixed = {"CDB_ENV_FILE": os.devnull, "CDB_DATA_DIR": str(self.data), "SCENARIO": "none"}
        # Users of a deployment need a token (`client.authorization`).
        fixed["CDB_OPEN_WRITES"] = "true"
        return clean | fixed | self.extra | more

    def having(self, **extra: str) -> "Settings":
        """The same settings with further environment variables."""
        return Settings(self.data, self.extra | extra)


@dataclass(frozen=True)
class Finished:
    """The result of a child process: exit code, output, seconds, peak resident memory in bytes."""

    code: int
    output: str
    seconds: float
    peak_bytes: int


def start(command: Sequence[str], environment: Mapping[str, str] | None, output: int | IO[str]) -> subprocess.Popen:
    """Start a program without input, in a session of its own: Ctrl-C must reach the harness only, which stops it."""
    options: dict[str, Any] = {"cwd": ROOT, "env": environment, "text": True, "start_new_session": True}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, **options)


@contextlib.contextmanager
def started(
    command: Sequence[str], environment: Mapping[str, str] | None, output: int | IO[str], seconds: float = STOP_SECONDS
) -> Iterator[subprocess.Popen]:
    """Run a program, as `start` does, inside the block. At the end it is stopped, as `stop` does, unless it has ended."""
    process = None
    try:
        process = start(command, environment, output)
        yield process
    finally:
        if process is not None:
            stop(process, seconds)


def stop(process: subprocess.Popen, seconds: float = STOP_SECONDS) -> None:
    """Terminate a process that `start` started; if it does not exit in time, kill it. Its children are killed with it."""
    if process.poll() is not None:
        return
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def last_line(output: str) -> str:
    """The last line of the output of a program, which says why it failed."""
    return (output.strip().splitlines() or ["no output"])[-1]


def kill(processes: Sequence[psutil.Process]) -> None:
    """Kill processes at once, and wait for their end; some may have ended already."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=STOP_SECONDS)


@contextlib.contextmanager
def frozen(processes: Sequence[psutil.Process]) -> Iterator[None]:
    """Stop processes inside the block (SIGSTOP): the kernel accepts connections for them, but they do not respond.

    Some may have ended already.
    """

    def each(act: Callable[[psutil.Process], None]) -> None:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                act(process)

    each(psutil.Process.suspend)
    try:
        yield
    finally:
        each(psutil.Process.resume)


def run_to_end(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Finished:
    """Run a program to its end; it is stopped if this process is interrupted meanwhile."""
    with tempfile.TemporaryFile("w+") as output:
        begin = time.monotonic()
        with started(command, environment, output) as process:
            # wait4 gives the usage of this child alone; getrusage would give the sum over all children.
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begin
        output.seek(0)
        return Finished(process.returncode, output.read(), seconds, usage.ru_maxrss * 1024)


def python(settings: Settings, *arguments: str) -> Finished:
    """Run a Python program to its end. Raises `ServiceError` with the last line of its output if it fails."""
    finished = run_to_end([sys.executable, *arguments], settings.environment())
    if finished.code:
        raise ServiceError(f"{' '.join(arguments[:2])} failed: {last_line(finished.output)}")
    return finished


def manage(settings: Settings, *arguments: str) -> Finished:
    """Run a command of manage.py, such as `seed_scenario tiny`. Raises `ServiceError` if it fails."""
    return python(settings, "manage.py", *arguments)


@dataclass(frozen=True)
class Service:
    """A running `manage.py run` or `manage.py serve`."""

    settings: Settings
    process: subprocess.Popen
    port: int
    output: Path

    @property
    def host(self) -> str:
        """The address, such as http://127.0.0.1:8000."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def lines(self) -> list[str]:
        """The lines of its output so far."""
        return self.output.read_text(errors="replace").splitlines()

    def url(self, path: str) -> str:
        """The URL of a route of the API."""
        return f"{self.host}{PREFIX}{path}"

    def root(self) -> psutil.Process:
        """The process from which all others of the service descend; the database is not among them."""
        return psutil.Process(self.process.pid)

    def program(self, name: str) -> psutil.Process:
        """The main process of a program: granian, gunicorn, nginx or compiler. Raises `ServiceError` if it does not run."""
        for child in self.root().children():
            with contextlib.suppress(psutil.Error):
                if any(name in word for word in child.cmdline()):
                    return child
        raise ServiceError(f"{name} is not running")


@contextlib.contextmanager
def running(
    settings: Settings, *, command: str = "run", program: Sequence[str] = (), ports: int = 1, **extra: str
) -> Iterator[Service]:
    """Serve inside the block with `manage.py run`, another command, or another program of Python, which needs more ports.

    Raises `ServiceError` if the service does not start.
    """
    port = free_port(ports)
    environment = settings.environment(PORT=str(port), **extra)
    program = [sys.executable, *(program or ("manage.py", command))]
    with tempfile.NamedTemporaryFile("w") as output, started(program, environment, output) as process:
        service = Service(settings, process, port, Path(output.name))
        family: list[psutil.Process] = []
        try:
            if not becomes_true(lambda: _has_started(service), START_SECONDS) or process.poll() is not None:
                raise ServiceError(f"the service did not start: {' '.join(service.output.read_text().split())[-500:]}")
            yield service
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                family = psutil.Process(process.pid).children(recursive=True)
            stop(process)
            # Normally they have ended.
            kill(family)


def becomes_true(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition holds; returns whether it does within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(CHECK_INTERVAL_SECONDS)
    return True


def _has_started(service: Service) -> bool:
    """Whether the service is ready, or has ended."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=5)
    with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
        connection.request("GET", "/health/ready")
        return connection.getresponse().status == 200
    return service.process.poll() is not None


def free_port(number: int = 1) -> int:
    """A free TCP port on 127.0.0.1, or the first of several. Raises `ServiceError` if none is found.

    It is below the kernel's range of ephemeral ports, of which the load generator uses thousands.
    """
    for _ in range(PORT_TRIES):
        port = random.randrange(*PORTS)
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            for place in range(number):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port + place))
            return port
    raise ServiceError(f"no free port was found among {PORTS}")
