"""A PostgreSQL server of our own, kept under one data directory: nothing to install, nothing to configure.

The binaries come from a wheel. The process that needs the server first starts it, and the one that leaves last stops it.
Every user process holds a shared file lock, which the kernel drops when that process dies, however it dies. A guard
(`cdb/embedded/postgres_guard.py`) waits for the exclusive lock, and stops the server if its last user was killed.

The server listens on a Unix socket alone, in a directory that only its owner (and root) may enter: two instances with
different data directories can't meet, and no password is needed.
"""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg2

from cdb.embedded import locks, postgres_binaries
from cdb.embedded.data_directory import DATABASE, DataDirectory, options_of
from cdb.embedded.postgres_process import PostgresProcess
from cdb.env import ROOT, ConfigurationError

PAUSE_SECONDS = 0.01
# How long the last user waits for the guard to end.
GUARD_SECONDS = 5


class EmbeddedPostgres:
    """The embedded server of one data directory.

    `directory` is made when missing. `options` are server settings beside our own, by name.
    """

    def __init__(self, directory: Path, options: dict[str, str] | None = None) -> None:
        self.directory = directory
        self._data_directory = DataDirectory(directory)
        self.data = self._data_directory.data
        self._use_lock: int | None = None
        self._process = PostgresProcess(
            data=self.data,
            log=directory / "server.log",
            socket_directory=self.socket_directory,
            options=options_of(directory) | (options or {}),
        )

    @property
    def socket_directory(self) -> Path:
        """The directory of the server's socket."""
        return self._data_directory.sockets

    @property
    def url(self) -> str:
        """The libpq URL of the service's database on this server."""
        return self._data_directory.url_of(DATABASE)

    def acquire(self) -> None:
        """Start the server unless it runs, and register as one of its users.

        Raises `ConfigurationError` with one line when the server can't be made or started.
        """
        postgres_binaries.check_installed()
        try:
            self._data_directory.make()
            with locks.control(self.directory):
                self._use_lock = locks.open_file(self.directory / locks.USERS)
                fcntl.flock(self._use_lock, fcntl.LOCK_SH)
                self._data_directory.initialise()
                if not self._process.is_running():
                    self._process.start()
                self._ensure_guard()
                self._data_directory.create_database()
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
            with locks.control(self.directory):
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

    def stop(self) -> None:
        """Stop the server if it runs. The caller makes sure that no process uses it."""
        self._process.stop()

    @staticmethod
    def _is_last_user(use_lock: int) -> bool:
        """Whether no other process uses the server. Only the last user, or the guard for a moment, can have the lock alone."""
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
