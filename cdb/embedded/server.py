"""The embedded PostgreSQL server of one data directory, which needs no installation and no configuration.

The process that has the lock on ``server.lock`` runs the server, and stops it when it ends; if it is killed, Linux stops the
server. Other processes find the server running and hold a shared lock on ``users.lock`` meanwhile.

The server listens only on a Unix socket, in a directory that only its owner and root can enter. So it needs no password, and
servers of different directories do not conflict.
"""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg2

from cdb.embedded import binaries
from cdb.env import ConfigurationError
from cdb.processes import directories, machine, templates
from cdb.processes.parent import starting_child

DATABASE = USER = "cdb"
# Crash recovery may take long before the server accepts connections.
START_TIMEOUT_SECONDS = 600
STOP_TIMEOUT_SECONDS = 60
PAUSE_SECONDS = 0.05
CONFIGURATION = "postgresql.conf"
SETTING = re.compile(r"^(\w+) = '?([^'#]*?)'?\s*(?:#.*)?$", re.MULTILINE)


class EmbeddedPostgres:
    """The embedded server of a data directory.

    `options` are settings of PostgreSQL that override those of deploy/postgresql.conf. Methods raise `ConfigurationError`, with
    a message of one line.
    """

    def __init__(self, directory: Path, options: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.log = directory / "server.log"
        # Beside the data, or elsewhere if that path is too long or contains a comma, which separates hosts in libpq.
        self.sockets = directories.for_sockets(directory / "socket", ",")
        self.url = self._url_of(DATABASE)
        self._options = options or {}
        self._lock: int | None = None
        self._users: int | None = None
        self._is_service = False
        self._process: subprocess.Popen[bytes] | None = None

    def acquire(self, service: str = "") -> None:
        """Make the server available until `release`: start it, or find it running. Creates the data and the database.

        A service, such as "make run", always runs the server itself: it waits for commands that run it, and fails if another
        service does. Waits while the server starts or stops.
        """
        binaries.check_installed()
        self._is_service = bool(service)
        try:
            self._create_directories()
            self._lock = _open(self.directory / "server.lock")
            while not _try_lock(self._lock, fcntl.LOCK_EX):
                if not service and self._join():
                    return
                other = os.pread(self._lock, 100, 0).decode()
                if service and other:
                    raise ConfigurationError(f"{other} uses {self.directory}; choose another CDB_DATA_DIR")
                time.sleep(PAUSE_SECONDS)
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, service.encode(), 0)
            self._initialise()
            self.start()
            self._create_database()
        except BaseException as error:
            self.release()
            if isinstance(error, OSError | psycopg2.Error):
                reason = " ".join(str(error).split())
                raise ConfigurationError(f"can't use {self.directory} for the embedded PostgreSQL: {reason}") from error
            raise

    def release(self) -> None:
        """Stop using the server, and stop it if this process runs it; a command first waits for others that use it."""
        try:
            if self._process and not self._is_service:
                with contextlib.closing(os.fdopen(_open(self.directory / "users.lock"))) as users:
                    fcntl.flock(users, fcntl.LOCK_EX)
                    self.stop()
            else:
                self.stop()
        finally:
            for lock in (self._users, self._lock):
                if lock is not None:
                    os.close(lock)
            self._users = self._lock = None

    def keep_lock(self) -> None:
        """Let the program that replaces this process (`os.exec`) keep the lock, after `stop`."""
        if self._lock is not None:
            os.set_inheritable(self._lock, True)

    def command(self) -> list[str]:
        """The command line of the server, for the account of `binaries.account`."""
        # The setting is a list, so its only element is quoted.
        quoted = str(self.sockets).replace('"', '""')
        options = settings(self.directory) | self._options | {"unix_socket_directories": f'"{quoted}"'}
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        return [str(binaries.BINARIES / "postgres"), "-D", str(self.data), *words]

    def start(self) -> None:
        """Start the server, which this process must have the lock for, and wait until it accepts connections."""
        self._wait_for_end()
        output, options = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), binaries.process_options()
        # A fast shutdown if this process is killed.
        with os.fdopen(output), starting_child(signal.SIGINT) as prepare:
            options |= {"stdout": output, "stderr": output, "preexec_fn": prepare}
            self._process = subprocess.Popen(self.command(), **options)  # noqa: S603
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not self._accepts_connections():
            if self._process.poll() is not None or time.monotonic() > deadline:
                # Not the answers to our own attempts to connect, such as "the database system is starting up".
                said = [line for line in self.log.read_text(errors="replace").splitlines() if "FATAL" in line]
                said = [line for line in said if "the database system is" not in line]
                raise ConfigurationError(
                    f"the embedded PostgreSQL did not start: {said[-1] if said else 'see its log'} ({self.log})"
                )
            time.sleep(PAUSE_SECONDS)

    def restart_if_ended(self) -> bool:
        """Restart the server if it was killed. Returns whether it was. This process must run it."""
        if self._process is None or self._process.poll() is None:
            return False
        self.start()
        return True

    def stop(self) -> None:
        """Stop the server, if this process runs it: connections are aborted, and all data are on disk (fast shutdown)."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ConfigurationError(
                f"the embedded PostgreSQL has not stopped within {STOP_TIMEOUT_SECONDS} s; see {self.log}"
            ) from error

    def _join(self) -> bool:
        """Register this process as a user of a server that another process runs. Returns whether the server is there."""
        users = _open(self.directory / "users.lock")
        # It cannot be locked while the server is being stopped.
        if _try_lock(users, fcntl.LOCK_SH) and self._accepts_connections():
            self._users = users
            return True
        os.close(users)
        return False

    def _accepts_connections(self) -> bool:
        try:
            psycopg2.connect(self._url_of("postgres"), connect_timeout=5).close()
        except psycopg2.OperationalError:
            return False
        return True

    def _url_of(self, database: str) -> str:
        return f"postgresql://{USER}@/{database}?host={quote(str(self.sockets))}&port={binaries.PORT}"

    def _create_directories(self) -> None:
        """Create the directories for the account that runs the server, unless they exist."""
        account = binaries.account()
        self.directory.mkdir(parents=True, exist_ok=True)
        if account:
            os.chown(self.directory, account.pw_uid, account.pw_gid, follow_symlinks=False)
            binaries.allow_traversal(self.directory)
            binaries.allow_traversal(binaries.BINARIES)
        directories.make_private(self.sockets, account)

    def _initialise(self) -> None:
        """Create the data with initdb, unless they exist. They get their final name last, so that they are complete."""
        version_file = self.data / "PG_VERSION"
        if version_file.exists():
            found = version_file.read_text().strip()
            if found != str(binaries.MAJOR_VERSION):
                raise ConfigurationError(
                    f"{self.data} was created by PostgreSQL {found}, this is {binaries.MAJOR_VERSION}: use another "
                    "CDB_DATA_DIR, and restore a backup of the old one there"
                )
            return
        for leftover in self.directory.glob("unfinished-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        unfinished = self.directory / f"unfinished-{uuid.uuid4().hex}"
        # Collation by byte order, which is the same with every C library.
        binaries.run(
            "initdb",
            f"--username={USER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            f"--pgdata={unfinished}",
        )
        unfinished.rename(self.data)

    def _create_database(self) -> None:
        with contextlib.closing(psycopg2.connect(self._url_of("postgres"))) as connection:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
            if cursor.fetchone() is None:
                cursor.execute(f"CREATE DATABASE {DATABASE}")

    def _wait_for_end(self) -> None:
        """Wait until no process of an earlier server is left, and remove its lock files.

        The process id in them may belong to another program by now, which PostgreSQL would take for the server.
        """
        pid_file = self.data / "postmaster.pid"
        if not pid_file.exists():
            return
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        data = str(self.data.resolve())
        while any(process.info["cwd"] == data for process in psutil.process_iter(["cwd"])):
            if time.monotonic() > deadline:
                raise ConfigurationError(f"another server, or the rest of one that was killed, uses {self.data}")
            time.sleep(PAUSE_SECONDS)
        for leftover in (pid_file, *self.sockets.glob(".s.PGSQL.*")):
            leftover.unlink(missing_ok=True)


def settings(directory: Path) -> dict[str, str]:
    """The settings of deploy/postgresql.conf by name, for this machine and the disk of `directory`."""
    memory, disk = machine.memory_megabytes(), machine.disk_megabytes(directory)
    text = templates.fill(
        CONFIGURATION, machine.postgresql_sizes(memory, disk) | {"CONNECTIONS": 100 + 32 * machine.cores()}
    )
    only_socket = {"listen_addresses": "", "port": binaries.PORT, "unix_socket_permissions": "0700"}
    return dict(SETTING.findall(text)) | only_socket | {"timezone": "UTC", "log_timezone": "UTC"}


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _try_lock(handle: int, kind: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
        return True
    return False
