"""Where the parts of the service find each other: the files and sockets of one CDB_DATA_DIR."""

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

# A socket's queue takes 4,096 connections on most machines, and lookups come in thousands.
SOCKETS = {"lookups": 3, "others": 1}
LOCK = "lock"
# What neither nginx's nor PgBouncer's configuration, nor a URL, takes for anything but a part of a path.
NOT_PLAIN = "[^A-Za-z0-9/._-]"


def directory() -> Path:
    """What `make serve` keeps: configuration, logs, the cache."""
    data: Path = env.read()["CDB_DATA_DIR"]
    return data / "serve"


def sockets() -> Path:
    """The directory of the Unix sockets, a short and plain path."""
    return directories.for_sockets(directory() / "sockets", NOT_PLAIN)


def pooler_sockets() -> Path:
    """The directory of PgBouncer's socket, into which nginx can't see."""
    return sockets() / "pool"


def sockets_of(pool: str) -> list[Path]:
    """The sockets that a gunicorn instance listens on: nginx.conf has as many."""
    return [sockets() / f"{pool}.sock.{number}" for number in range(1, SOCKETS[pool] + 1)]


def temporary() -> Path:
    """Where answers are collected before they go into the cache: in memory, where the machine has such a place. That is another
    file system than the cache's, so that a full disk can't cut an answer short."""
    return (
        directories.MEMORY / f"cdb-{directories.digest(directory())}"
        if directories.MEMORY.is_dir()
        else directory() / "temporary"
    )


def nginx_account() -> pwd.struct_passwd | None:
    """The account that serves, or None for our own. Started by root, nginx's workers give up its rights."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def nginx_user() -> str:
    """nginx's line that names this account and its group, or nothing."""
    account = nginx_account()
    return f"user {account.pw_name} {grp.getgrgid(account.pw_gid).gr_name};" if account else ""


@contextlib.contextmanager
def taken() -> Iterator[None]:
    """Make the directories and keep them from others inside the block.

    Raises `ConfigurationError` where another `make serve` uses them.
    """
    directory().mkdir(parents=True, exist_ok=True)
    lock = os.open(directory() / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _make_directories()
        try:
            yield
        finally:
            shutil.rmtree(temporary(), ignore_errors=True)
    except BlockingIOError as error:
        message = f"another make serve uses {directory()}; choose another CDB_DATA_DIR"
        raise ConfigurationError(message) from error
    finally:
        os.close(lock)


def is_taken() -> bool:
    """Whether a `make serve` uses the directories. Raises `ConfigurationError` where they are another user's."""
    with contextlib.suppress(FileNotFoundError):
        try:
            lock = os.open(directory() / LOCK, os.O_RDWR)
        except PermissionError as error:
            raise ConfigurationError(f"{directory()} belongs to another user; use it as that user") from error
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
    # The database may be another one than before, or restored: then frozen tags have other answers.
    for leftover in (directory() / "cache").iterdir():
        shutil.rmtree(leftover, ignore_errors=True)
    if serving:
        postgres_binaries.let_pass(directory() / "any")
        postgres_binaries.let_pass(sockets() / "any")
