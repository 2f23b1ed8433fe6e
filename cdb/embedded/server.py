"""A PostgreSQL server of our own, kept under one data directory: nothing to install, nothing to configure.

The binaries come from a wheel. The process that needs the server first starts it, and the one that leaves last stops it.
Every user process holds a shared file lock, which the kernel drops when that process dies, however it dies. A guard
(`cdb/embedded/postgres_guard.py`) waits for the exclusive lock, and stops the server if its last user was killed.

The server listens on a Unix socket alone, in a directory that only its owner (and root) may enter: two instances with
different data directories can't meet, and no password is needed.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg2

from cdb.embedded import postgres_binaries
from cdb.embedded.postgres_process import PostgresProcess
from cdb.env import ROOT, ConfigurationError
from cdb.processes import directories
from cdb.processes.machine import disk_megabytes, memory_megabytes, share

DATABASE = USER = "cdb"
# Held by the processes that use the server (shared), and by the guard.
USERS_LOCK, GUARD_LOCK = "users.lock", "guard.lock"
PAUSE_SECONDS = 0.01
# How long the last user waits for the guard to end.
GUARD_SECONDS = 5


OPTIONS = {
    "listen_addresses": "",
    "port": postgres_binaries.PORT,
    "unix_socket_permissions": "0700",
    # Room for a few instances of the service beside commands and tests.
    "max_connections": "200",
    # 2 GB hold the lookup's index of some ten million IOVs. The server touches as much of it as it has data for.
    "shared_buffers": share(memory_megabytes(), 8, 128, 2048),
    # The lookup's plan is a few hundred index probes: compiling it costs more than running it.
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Time, process, and the name of the client's program: an instance of the service, or a command.
    "log_line_prefix": "%m [%p] %q%a ",
    # Fresh rows slow an index-only scan down until they are vacuumed, so look for them more often than every minute.
    "autovacuum_naptime": "10s",
}


class EmbeddedPostgres:
    """The embedded server of one data directory.

    `directory` is made when missing. `options` are server settings beside our own, by name.
    """

    def __init__(self, directory: Path, options: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.data = directory / "data"
        self._use_lock: int | None = None
        self._process = PostgresProcess(
            data=self.data,
            log=directory / "server.log",
            socket_directory=self.socket_directory,
            # More than the default, so that seeding does not checkpoint all the time.
            options=OPTIONS | {"max_wal_size": share(disk_megabytes(directory), 20, 256, 4096)} | (options or {}),
        )

    @property
    def socket_directory(self) -> Path:
        """Where the server's socket is: beside the data, or under the temporary directory where that path can't serve.

        It can't if it is too long, or has a comma, at which clients split a list of hosts.
        """
        return directories.for_sockets(self.directory / "socket", ",")

    @property
    def url(self) -> str:
        """The libpq URL of the service's database on this server."""
        return self._url_of(DATABASE)

    def _url_of(self, database: str) -> str:
        return f"postgresql://{USER}@/{database}?host={quote(str(self.socket_directory))}&port={postgres_binaries.PORT}"

    def acquire(self) -> None:
        """Start the server unless it runs, and register as one of its users.

        Raises `ConfigurationError` with one line when the server can't be made or started.
        """
        postgres_binaries.check_installed()
        try:
            self._make_directories()
            with self._control_lock():
                self._use_lock = os.open(self.directory / USERS_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(self._use_lock, fcntl.LOCK_SH)
                self._initialise()
                if not self._process.is_running():
                    self._process.start()
                self._ensure_guard()
                self._create_database()
        except BaseException as error:
            self.release()
            if isinstance(error, OSError | psycopg2.Error):
                reason = " ".join(str(error).split())
                raise ConfigurationError(f"can't use {self.directory} for the embedded PostgreSQL: {reason}") from error
            raise

    def revive(self) -> bool:
        """Start the server again if it has died under its users. Returns whether it had to be."""
        if self._process.is_alive():
            return False
        try:
            with self._control_lock():
                if self._process.is_running():
                    return False
                self._process.start()
                return True
        except OSError as error:
            raise ConfigurationError(f"can't start it again: {error}") from error

    def release(self) -> None:
        """Stop using the server, and stop it if no other process uses it."""
        if self._use_lock is None:
            return
        with self._open(GUARD_LOCK) as guard:
            with self._control_lock():
                try:
                    is_last = self._is_last_user(self._use_lock)
                    if is_last:
                        self._process.stop()
                finally:
                    os.close(self._use_lock)
                    self._use_lock = None
            deadline = time.monotonic() + GUARD_SECONDS
            while is_last and not _try_lock(guard, fcntl.LOCK_SH) and time.monotonic() < deadline:
                time.sleep(PAUSE_SECONDS)

    def guard(self) -> None:
        """Wait until no process uses the server, then stop it."""
        with self._open(USERS_LOCK) as users:
            while True:
                fcntl.flock(users, fcntl.LOCK_EX)
                # Users take the control lock first, so it can't be waited for with this one held.
                fcntl.flock(users, fcntl.LOCK_UN)
                with self._control_lock():
                    if _try_lock(users, fcntl.LOCK_EX):
                        self._process.stop()
                        # The next user needs another guard.
                        (self.directory / GUARD_LOCK).unlink(missing_ok=True)
                        return

    @staticmethod
    def _is_last_user(use_lock: int) -> bool:
        """Whether no other process uses the server. Only the last user, or the guard for a moment, can have the lock alone."""
        while True:
            for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
                if _try_lock(use_lock, kind):
                    return kind == fcntl.LOCK_EX
            time.sleep(PAUSE_SECONDS)

    def _ensure_guard(self) -> None:
        with self._open(GUARD_LOCK) as lock:
            if _try_lock(lock, fcntl.LOCK_EX):
                _start_guard(self.directory, lock)

    @contextlib.contextmanager
    def _control_lock(self) -> Iterator[None]:
        """Serialise starting and stopping among processes."""
        with self._open("control.lock") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _open(self, name: str) -> Iterator[int]:
        """A descriptor of a lock's file."""
        handle = os.open(self.directory / name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            yield handle
        finally:
            os.close(handle)

    def _make_directories(self) -> None:
        account = postgres_binaries.account()
        self.directory.mkdir(parents=True, exist_ok=True)
        if account:
            os.chown(self.directory, account.pw_uid, account.pw_gid, follow_symlinks=False)
            postgres_binaries.let_pass(self.directory)
            postgres_binaries.let_pass(postgres_binaries.BINARIES)
        directories.make_private(self.socket_directory, account)

    def _initialise(self) -> None:
        """Make the data directory; it gets its name only when it is complete, so a kill in between leaves no half."""
        version_file = self.data / "PG_VERSION"
        if version_file.exists():
            found = version_file.read_text().strip()
            if found != str(postgres_binaries.MAJOR_VERSION):
                raise ConfigurationError(
                    f"{self.data} was made by PostgreSQL {found}, this is {postgres_binaries.MAJOR_VERSION}: "
                    "dump and restore, or use another CDB_DATA_DIR"
                )
            return
        # A name of its own, because the initdb of a killed start may still be busy, and removes what it did not finish.
        unfinished = self.directory / f"unfinished-{uuid.uuid4().hex}"
        # Byte order as collation: the same on every machine, whatever its C library.
        postgres_binaries.run(
            "initdb", "--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale-provider", "builtin",
            "--builtin-locale", "C.UTF-8", "--locale", "C", "--pgdata", str(unfinished),
        )  # fmt: skip
        unfinished.rename(self.data)
        for leftover in self.directory.glob("unfinished-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def _create_database(self) -> None:
        with contextlib.closing(psycopg2.connect(self._url_of("postgres"))) as connection:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
            if cursor.fetchone() is None:
                cursor.execute(f"CREATE DATABASE {DATABASE}")


def _start_guard(directory: Path, lock: int) -> None:
    """Start the guard of the embedded server in `directory`, in a session of its own.

    `lock` is the descriptor of a lock that we have. The guard inherits it, and so has it as long as it lives.
    """
    subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "cdb.embedded.postgres_guard", str(directory)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=[lock],
    )


def _try_lock(handle: int, kind: int) -> bool:
    """Take a lock of that kind unless another process has it. Returns whether it was taken."""
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
        return True
    return False
