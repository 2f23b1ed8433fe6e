"""The files and sockets of `make serve`, most of them under CDB_DATA_DIR, and the lock on them.

Only `locked` creates the directories.
"""

import contextlib
import fcntl
import grp
import os
import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path

from cdb import env
from cdb.embedded import postgres_binaries
from cdb.env import ConfigurationError
from cdb.processes import directories

# The number of sockets of each pool. The queue of one socket has at most 4,096 connections on most machines,
# and thousands of lookups may arrive at the same time.
SOCKETS = {"lookups": 3, "others": 1}
LOCK, PID_FILE = "lock", "serve.pid"
# Characters that may have a special meaning in the configuration of nginx or PgBouncer, or in a URL.
NOT_PLAIN = "[^A-Za-z0-9/._-]"


def directory() -> Path:
    """The directory of the files of `make serve`: configuration, logs, the cache."""
    data: Path = env.read()["CDB_DATA_DIR"]
    return data / "serve"


def sockets() -> Path:
    """The directory of the Unix sockets: a short path without special characters.

    It is under the temporary directory if the path under CDB_DATA_DIR is too long or has special characters.
    """
    return directories.for_sockets(directory() / "sockets", NOT_PLAIN)


def pooler_sockets() -> Path:
    """The directory of PgBouncer's socket, to which only PgBouncer's account, and root, have access."""
    return sockets() / "pool"


def sockets_of(pool: str) -> list[Path]:
    """The paths of the sockets that a gunicorn instance listens on. deploy/nginx.conf has a placeholder for each."""
    return [sockets() / f"{pool}.sock.{number}" for number in range(1, SOCKETS[pool] + 1)]


def temporary() -> Path:
    """The directory in which nginx collects a response before it moves it to the cache.

    It is in /dev/shm if the machine has it. That is another file system than the cache's, so a full disk
    can't truncate a response.
    """
    return (
        directories.MEMORY / f"cdb-{directories.digest(directory())}"
        if directories.MEMORY.is_dir()
        else directory() / "temporary"
    )


def nginx_account() -> pwd.struct_passwd | None:
    """The account of nginx's workers if this process is root, so that they drop root's privileges; otherwise None.

    None stands for the account of this process.
    """
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def nginx_user() -> str:
    """nginx's `user` directive with `nginx_account` and its group; empty if this process is not root."""
    account = nginx_account()
    return f"user {account.pw_name} {grp.getgrgid(account.pw_gid).gr_name};" if account else ""


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Create the directories, empty nginx's cache, and lock the directories inside the block.

    Raises `ConfigurationError` if another `make serve` uses them, or if an existing directory has another owner or
    wider permissions.
    """
    directory().mkdir(parents=True, exist_ok=True)
    lock = os.open(directory() / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = f"another make serve uses {directory()}; choose another CDB_DATA_DIR"
            raise ConfigurationError(message) from error
        # That of a process that was killed. Its number may by now belong to another program.
        (directory() / PID_FILE).unlink(missing_ok=True)
        _make_directories()
        try:
            yield
        finally:
            shutil.rmtree(temporary(), ignore_errors=True)
    finally:
        os.close(lock)


def is_locked() -> bool:
    """Whether a `make serve` uses the directories. Raises `ConfigurationError` without permission to open the lock."""
    with contextlib.suppress(FileNotFoundError):
        try:
            lock = os.open(directory() / LOCK, os.O_RDWR)
        except PermissionError as error:
            raise ConfigurationError(f"{directory()} belongs to another user; run the command as the owner") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
    return False


def _make_directories() -> None:
    serving, pooling = nginx_account(), postgres_binaries.account()
    directories.make_private(sockets(), None, 0o711)
    directories.make_private(pooler_sockets(), pooling)
    directories.make_private(temporary(), serving)
    for name in ("cache", "body"):
        directories.make_private(directory() / name, serving)
    # The database may have been replaced or restored, so cached responses for frozen tags may be wrong.
    for leftover in (directory() / "cache").iterdir():
        shutil.rmtree(leftover, ignore_errors=True)
    if serving:
        postgres_binaries.allow_traversal(directory() / "any")
        postgres_binaries.allow_traversal(sockets() / "any")
