"""The whole service as a user runs it, in separate processes."""

import contextlib
import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from cdb.env import ROOT
from loadtests.service import free_port
from tests.postgres import DIRECTORY


def after_first_start(settings: dict[str, str]) -> Path:
    """A data directory as the first start with these settings leaves it, made once for all processes of a test run."""
    directory = DIRECTORY / "prepared" / "-".join(settings.values())
    directory.parent.mkdir(exist_ok=True)
    with directory.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            unfinished = Path(tempfile.mkdtemp(dir=directory.parent))
            service = Service(unfinished / "data", is_first_start=True, **settings).start()
            assert service.stop() == 0
            unfinished.rename(directory)
    return directory / "data"


def copy_data(source: Path, target: Path) -> None:
    """Copy a data directory. Ranges of zeros take no memory or disk, which is half of it: new WAL is full of zeros."""
    subprocess.run(["cp", "--archive", "--sparse=always", source, target], check=True)


class Service:
    """`manage.py run`, or `serve`, with its own port, data directory and settings; `start_lines` is what
    it printed until it served.

    A new data directory is the copy of one that was started before, which saves the time to make and to fill a database,
    unless `is_first_start`. It has one process for lookups, unless CDB_WORKERS says otherwise: each takes half a second of CPU
    time to start.
    """

    def __init__(
        self, data: Path, command: str = "run", *, root: Path = ROOT, is_first_start: bool = False, **settings: str
    ) -> None:
        self.data = data
        self.root = root
        self.is_first_start = is_first_start or "DATABASE_URL" in settings
        # What a data directory depends on.
        self.database = {"SCENARIO": "tiny", "CDB_IOV_MODE": "continuous"}
        self.database |= {name: settings[name] for name in self.database.keys() & settings.keys()}
        self.command = command
        self.port = free_port()
        hidden = ("CDB_", "DATABASE_URL", "PORT", "SCENARIO", "DEBUG", "PYTEST")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        # As `make run` has it. Tests of access turn it off.
        fixed = {"CDB_OPEN_WRITES": "true"} if command == "serve" else {}
        fixed |= {"CDB_ENV_FILE": os.devnull, "CDB_DATA_DIR": str(data), "PORT": str(self.port), "CDB_WORKERS": "1"}
        self.environment = clean | fixed | settings
        self.python, self.account = sys.executable, dict[str, Any]()
        self.lines: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/cdb_rest/"

    def start(self) -> "Service":
        if not self.is_first_start and not self.data.exists():
            self.data.parent.mkdir(parents=True, exist_ok=True)
            copy_data(after_first_start(self.database), self.data)
        self.process = subprocess.Popen(
            [self.python, "manage.py", self.command],
            cwd=self.root,
            env=self.environment,
            **self.account,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # As a shell does with what it starts in the background.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )
        self.lines = []
        ready = threading.Event()

        def read() -> None:
            for line in self.process.stdout:
                self.lines.append(line.rstrip("\n"))
                if line.startswith("Stop:"):
                    ready.set()
            ready.set()

        threading.Thread(target=read, daemon=True).start()
        # A first start with a large scenario takes a minute on a busy machine.
        assert ready.wait(240), self.lines
        self.start_lines = list(self.lines)
        assert any(line.startswith("Stop:") for line in self.start_lines), self.lines
        return self

    @contextlib.contextmanager
    def running(self) -> Iterator["Service"]:
        """Inside the block it runs. It has to stop without a fault, and nothing of it is left, whatever happens."""
        try:
            yield self.start()
            assert self.stop() == 0
            assert self.family() == []
        finally:
            self.kill_everything()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def manage(self, *arguments: str, seconds: float = 120) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def family(self) -> list[psutil.Process]:
        """Every living process of this instance: supervisord or the command, its programs, and PostgreSQL."""
        directories = {str(self.data.resolve() / name) for name in ("postgres/data", "serve")}
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                of_server = process.cwd() in directories or f"{self.data.resolve()}/serve/" in process.cmdline()
                of_service = process.environ().get("CDB_DATA_DIR") == str(self.data) and process.pid != os.getpid()
                if of_server or of_service:
                    found.append(process)
        # nginx overwrites its environment.
        return list(dict.fromkeys(one for process in found for one in (process, *_children(process))))

    def ask_each(self, question: Callable[[psutil.Process], Any]) -> dict[psutil.Process, Any]:
        """What `question` returns for each process of this instance. Those that end meanwhile are left out."""
        answers = {}
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                answers[process] = question(process)
        return answers

    def programs(self, word: str) -> list[psutil.Process]:
        """The living processes of this instance whose command line has that word."""
        commands = self.ask_each(lambda process: " ".join(process.cmdline()))
        return [process for process, command in commands.items() if word in command]

    def kill_everything(self) -> None:
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if hasattr(self, "process"):
            self.process.wait(10)


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [child for child in process.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    except psutil.NoSuchProcess:
        return []


class JobClient:
    """Talks as the compiled clients do: a new connection for each call, no Accept-Encoding, no redirects followed, the
    body parsed as JSON before the status is read."""

    def __init__(self, port: int, base: str = "") -> None:
        self.port, self.base = port, base
        self.calls: list[str] = []

    def call(self, method: str, path: str, body: Any = ..., headers: dict[str, str] | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, f"{self.base}/api/cdb_rest/{path}", skip_accept_encoding=True)
            connection.putheader("Accept", "*/*")
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            content = b""
            if body is not ...:
                content = json.dumps(body).encode()
                connection.putheader("Content-Type", "application/json")
            if method != "GET":
                connection.putheader("Content-Length", str(len(content)))
            connection.endheaders(content)
            response = connection.getresponse()
            parsed = json.loads(response.read())
            assert response.getheader("Content-Encoding") is None
            assert not 300 <= response.status < 400
            self.calls.append(f"{method} {path.split('/')[0]}")
            return response.status, parsed
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, parsed = self.call("GET", path)
        assert status == 200, (path, status, parsed)
        return parsed


def raw(port: int, request: bytes, timeout: float = 30) -> tuple[int, dict[str, str], bytes]:
    """Send bytes on a socket and read the answer to its end: status, headers, body."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall(request)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
