"""This machine: its memory and disk, settings of PostgreSQL that are shares of them, and its TCP ports."""

import os
import shutil
import socket
import time
from pathlib import Path

from cdb.env import ConfigurationError

# A server that was killed a moment ago may still hold the port, on a busy machine for some seconds.
PORT_TIMEOUT_SECONDS = 10


def memory_megabytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20


def disk_megabytes(path: Path) -> int:
    """The size of the file system that `path` is on, or will be when it is made."""
    existing = next(one for one in (path, *path.parents) if one.exists())
    return shutil.disk_usage(existing).total // 2**20


def share(megabytes: int, part: int, least: int, most: int) -> str:
    """One `part`-th of so many megabytes, between `least` and `most`, as PostgreSQL writes sizes."""
    return f"{max(least, min(most, megabytes // part))}MB"


def bind_port(port: int, how: str) -> socket.socket:
    """A socket on 127.0.0.1 and the port, bound and not listening.

    Raises `ConfigurationError` if another program has the port; `how` is the command that is to be given another one.
    """
    deadline = time.monotonic() + PORT_TIMEOUT_SECONDS
    while True:
        bound = socket.socket()
        # As servers do, so that connections of the past that linger in the kernel are no hindrance.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(("127.0.0.1", port))
            return bound
        except OSError as error:
            bound.close()
            if time.monotonic() > deadline:
                raise ConfigurationError(_reason(error, port, how)) from error
        time.sleep(0.2)


def _reason(error: OSError, port: int, how: str) -> str:
    if isinstance(error, PermissionError):
        return f"only root may serve port {port}; choose another one: {how} PORT=8000"
    return f"port {port} is in use; choose another one: {how} PORT={port + 1}"
