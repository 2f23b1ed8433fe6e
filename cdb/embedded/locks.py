"""The file locks in the directory of an embedded server, which the kernel drops when their process dies.

This module and the guard, a process of its own beside each server, import nothing but the standard library, so that the guard
starts at once and needs little memory.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

# The first is held by the processes that use the server (shared), the second by the guard.
USERS, GUARD = "users.lock", "guard.lock"


@contextlib.contextmanager
def control(directory: Path) -> Iterator[None]:
    """Serialise starting and stopping among processes."""
    with opened(directory / "control.lock") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor of a lock's file, which the block's end closes."""
    handle = open_file(path)
    try:
        yield handle
    finally:
        os.close(handle)


def open_file(path: Path) -> int:
    """A descriptor of a lock's file, which is made when missing."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def try_lock(handle: int, kind: int) -> bool:
    """Take a lock of that kind unless another process has it. Returns whether it was taken."""
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
        return True
    return False
