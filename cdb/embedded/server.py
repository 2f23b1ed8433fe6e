"""The embedded PostgreSQL server, which needs no installation and no configuration and keeps its data in one directory.

The binaries come from a wheel. The first process that uses the server starts it, and the last one stops it. Every
process that uses it holds a shared file lock, which the kernel releases when the process ends, even if it is killed. A
guard (`cdb/embedded/postgres_guard.py`) waits for the exclusive lock, and stops the server if its last user was killed.

The server listens only on a Unix socket, in a directory that only its owner and root can enter. So it needs
no password, and instances with different data directories do not conflict.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg2

from cdb.embedded import locks, postgres_binaries
from cdb.embedded.data_directory import DATABASE, RESTORED, DataDirectory, server_options
from cdb.embedded.postgres_process import PostgresProcess
from cdb.env import ROOT, ConfigurationError

PAUSE_SECONDS = 0.01
# The last user waits this long for the guard to end.
GUARD_SECONDS = 5


class EmbeddedPostgres:
    """The embedded server of one data directory.

    `acquire` creates `directory` if it does not exist. `options` are server settings by name; they override the
    default ones if this object starts the server, and are ignored if the server runs already.
    """

    def __init__(self, directory: Path, options: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.log = directory / "server.log"
        self.data_directory = DataDirectory(directory)
        self.data = self.data_directory.data
        self._use_lock: int | None = None
        self._process = self.process(self.data, options or {})

    @property
    def socket_directory(self) -> Path:
        """The directory of the server's socket."""
        return self.data_directory.sockets

    @property
    def url(self) -> str:
        """The libpq URL of the service's database on this server."""
        return self.data_directory.url_of(DATABASE)

    def acquire(self) -> None:
        """Start the server unless it runs, and register this process as one of its users until `release`.

        Creates the data and the service's database if they do not exist. Returns when the server accepts connections.
        Waits while another process starts, stops or restores the server. Must not be called again before `release`.

        Raises `ConfigurationError`, with a message of one line, if the server can't be created or started.
        """
        postgres_binaries.check_installed()
        try:
            self.data_directory.create()
            with locks.control(self.directory):
                self._use_lock = locks.open_file(self.directory / locks.USERS)
                fcntl.flock(self._use_lock, fcntl.LOCK_SH)
                self.data_directory.initialise()
                if not self._process.is_running():
                    self._remove_unfinished()
                    self._process.start()
                self._ensure_guard()
                self.data_directory.create_database()
        except BaseException as error:
            self.release()
            if isinstance(error, OSError | psycopg2.Error):
                reason = " ".join(str(error).split())
                raise ConfigurationError(f"can't use {self.directory} for the embedded PostgreSQL: {reason}") from error
            raise

    def restart_if_ended(self) -> bool:
        """Restart the server if it has ended although it is in use. Returns whether this call restarted it.

        Must be called only between `acquire` and `release`. Raises `ConfigurationError` if it can't be started.
        """
        if self._process.is_alive():
            return False
        try:
            with locks.control(self.directory):
                if self._process.is_running():
                    return False
                self._process.start()
                return True
        except OSError as error:
            raise ConfigurationError(f"can't restart the embedded PostgreSQL in {self.directory}: {error}") from error

    def release(self) -> None:
        """Unregister this process as a user, and stop the server if no other process uses it.

        Waits some seconds for the end of the guard process. Does nothing if this object has not registered the process.
        Raises `ConfigurationError` if the server does not stop in time; the process is unregistered nevertheless.
        """
        if self._use_lock is None:
            return
        with locks.opened(self.directory / locks.GUARD) as guard:
            with locks.control(self.directory):
                try:
                    is_last = self._is_last_user(self._use_lock)
                    if is_last:
                        self._process.stop()
                finally:
                    os.close(self._use_lock)
                    self._use_lock = None
            deadline = time.monotonic() + GUARD_SECONDS
            while is_last and not locks.try_lock(guard, fcntl.LOCK_SH) and time.monotonic() < deadline:
                time.sleep(PAUSE_SECONDS)

    @contextlib.contextmanager
    def unused(self) -> Iterator[None]:
        """Stop the server and keep other processes from using it inside the block. A context manager.

        `acquire` waits until the block ends, so it must not be called inside. Raises `ConfigurationError` if a process
        uses the server, even this one, or if it does not stop in time.
        """
        postgres_binaries.check_installed()
        self.data_directory.create()
        with locks.control(self.directory), locks.opened(self.directory / locks.USERS) as users:
            if not locks.try_lock(users, fcntl.LOCK_EX):
                raise ConfigurationError(f"the database in {self.directory} is in use; stop the service first")
            # A server whose last user was killed may still run.
            self._process.stop()
            self._remove_unfinished()
            yield

    def process(self, data: Path, options: dict[str, str]) -> PostgresProcess:
        """A server on the data in `data`, which is not started. It has the same socket as this one: only one may run.

        `options` override the default settings; those that were given to this object are not used.
        """
        return PostgresProcess(
            data=data,
            log=self.log,
            socket_directory=self.socket_directory,
            options=server_options(self.directory) | options,
        )

    def _remove_unfinished(self) -> None:
        """Remove the data that a killed restoration has left.

        The server of that restoration, which has the same socket, may still be stopping.
        """
        for data in self.directory.glob(f"{RESTORED}*"):
            self.process(data, {}).stop()
            shutil.rmtree(data)

    def stop(self) -> None:
        """Stop the server if it runs. Raises `ConfigurationError` if it does not stop in time.

        The caller must hold the control lock (`locks.control`) and ensure that no process uses the server.
        """
        self._process.stop()

    @staticmethod
    def _is_last_user(use_lock: int) -> bool:
        """Whether no other process uses the server.

        Only the last user can get the lock exclusively. Otherwise, this process gets its shared lock again. Neither
        succeeds while the guard holds the lock, which is for a moment only, so this is retried.
        """
        while True:
            for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
                if locks.try_lock(use_lock, kind):
                    return kind == fcntl.LOCK_EX
            time.sleep(PAUSE_SECONDS)

    def _ensure_guard(self) -> None:
        with locks.opened(self.directory / locks.GUARD) as lock:
            if locks.try_lock(lock, fcntl.LOCK_EX):
                _start_guard(self.directory, lock)


def _start_guard(directory: Path, lock: int) -> None:
    """Start the guard of the embedded server in `directory`, in a new session.

    `lock` is the descriptor of a file on which this process holds a lock. The guard inherits it, and holds
    the lock until it ends.
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
