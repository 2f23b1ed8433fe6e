"""The cores, memory, disk and TCP ports of this machine, and PostgreSQL settings that are proportional to memory or disk."""

import contextlib
import os
import shutil
import socket
import time
from pathlib import Path

from cdb.env import ConfigurationError

# A server that was just killed may still occupy the port, on a busy machine for some seconds.
PORT_TIMEOUT_SECONDS = 10
HIGHEST_PORT = 65535
# Inside a container with cgroup v2.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def memory_megabytes() -> int:
    """The physical memory of this machine, in MiB. The limit of a container is not considered."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20


def memory_limit_bytes(limit: Path = CONTAINER_LIMIT) -> int:
    """The memory that this process may use: that of the machine, or the limit of its container if that is less."""
    physical = memory_megabytes() * 2**20
    with contextlib.suppress(OSError, ValueError):
        # Without a limit the file says "max".
        return min(physical, int(limit.read_text()))
    return physical


def disk_megabytes(path: Path) -> int:
    """The size, in MiB, of the file system of `path`, which need not exist yet."""
    existing = next(item for item in (path, *path.parents) if item.exists())
    return shutil.disk_usage(existing).total // 2**20


def share(megabytes: int, part: int, least: int, most: int) -> str:
    """A `part`-th of `megabytes`, but at least `least` and at most `most`, in PostgreSQL's notation: "128MB"."""
    return f"{max(least, min(most, megabytes // part))}MB"


def postgresql_sizes(memory: int, disk: int) -> dict[str, str]:
    """The values of the placeholders in deploy/postgresql.conf except CONNECTIONS, for `memory` and `disk` in MiB.

    The comments there have the rules.
    """
    return {
        "SHARED_BUFFERS": share(memory, 4, 128, 16384),
        "EFFECTIVE_CACHE_SIZE": f"{max(256, memory * 5 // 8)}MB",
        "WORK_MEM": share(memory, 512, 4, 64),
        "MAINTENANCE_WORK_MEM": share(memory, 16, 64, 2048),
        "MAX_WAL": share(disk, 20, 256, 8192),
        "MIN_WAL": share(disk, 160, 80, 1024),
        "SLOT_WAL": share(disk, 10, 512, 10240),
    }


def check_port_free(port: int, command: str) -> None:
    """Raise `ConfigurationError` if another program uses the port on 127.0.0.1, or if only root may use it.

    Waits for the port for up to `PORT_TIMEOUT_SECONDS`. The message suggests `command`, such as "make run", with another port.
    """
    deadline = time.monotonic() + PORT_TIMEOUT_SECONDS
    while True:
        with socket.socket() as bound:
            # Otherwise closed connections in state TIME_WAIT would prevent the bind.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                bound.bind(("127.0.0.1", port))
                return
            except OSError as error:
                if isinstance(error, PermissionError) or time.monotonic() > deadline:
                    raise ConfigurationError(_reason(error, port, command)) from error
        time.sleep(0.2)


def _reason(error: OSError, port: int, command: str) -> str:
    if isinstance(error, PermissionError):
        return f"only root may listen on port {port}; choose another one: {command} PORT=8000"
    return f"port {port} is in use; choose another one: {command} PORT={port + 1 if port < HIGHEST_PORT else port - 1}"
