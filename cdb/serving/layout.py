"""The files and sockets of `make serve`, most of them under CDB_DATA_DIR, and the lock on them."""

import fcntl
import os
import pwd
import shutil
from pathlib import Path

from cdb import env
from cdb.embedded import binaries
from cdb.env import ConfigurationError
from cdb.processes import directories

# Characters that may have a special meaning in a configuration file.
NOT_PLAIN = "[^A-Za-z0-9/._-]"


def directory() -> Path:
    """The directory of the configuration, logs and the cache."""
    return Path(env.read()["CDB_DATA_DIR"], "serve")


def sockets() -> Path:
    """The directory of the Unix sockets, elsewhere if the path under CDB_DATA_DIR is too long or has special characters."""
    return directories.for_sockets(directory() / "sockets", NOT_PLAIN)


def temporary() -> Path:
    """The directory in which nginx collects a response before it moves it to the cache.

    It is in memory, so that a full disk can't truncate a response.
    """
    return directories.in_memory(directory() / "temporary")


def nginx_account() -> pwd.struct_passwd | None:
    """The account of nginx's workers if this process is root; otherwise None, for the account of this process."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def create() -> None:
    """Create the directories. Raises `ConfigurationError` if one exists with another owner or wider permissions."""
    account = nginx_account()
    directory().mkdir(parents=True, exist_ok=True)
    for path in (sockets(), temporary(), directory() / "cache", directory() / "body"):
        directories.make_private(path, account)
        if account:
            binaries.allow_traversal(path)


def lock() -> None:
    """Lock the directories until this process and its successors end, and empty nginx's cache.

    Raises `ConfigurationError` if another `make serve` uses them.
    """
    create()
    handle = os.open(directory() / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ConfigurationError(f"another make serve uses {directory()}; choose another CDB_DATA_DIR") from error
    # supervisord, which replaces this process, keeps it.
    os.set_inheritable(handle, True)
    # The database may have been replaced or restored, so cached responses for frozen tags may be wrong.
    for leftover in (directory() / "cache").iterdir():
        shutil.rmtree(leftover, ignore_errors=True)
