"""The file locks in the directory of an embedded server, which the kernel releases when their process ends.

The guard of each server imports this module. Both import only the standard library, so that the guard starts fast
and needs little memory.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

# The processes that use the server hold a shared lock on the first file, the guard an exclusive lock on the second one.
USERS, GUARD = "users.lock", "guard.lock"


@contextlib.contextmanager
def control(directory: Path) -> Iterator[None]:
    """Hold the exclusive lock that serialises starting and stopping the server among processes."""
    with opened(directory / "control.lock") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor of a lock file, which is closed at the end of the block."""
    handle = open_file(path)
    try:
        yield handle
    finally:
        os.close(handle)


def open_file(path: Path) -> int:
    """A descriptor of a lock file, which is created if it does not exist."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def try_lock(handle: int, kind: int) -> bool:
    """Try to acquire a lock, exclusive (`fcntl.LOCK_EX`) or shared (`fcntl.LOCK_SH`), without waiting.

    Returns whether it was acquired.
    """
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
        return True
    return False
