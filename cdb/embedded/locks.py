"""The file locks in the directory of an embedded server, which the kernel releases when their process ends.

The guard of each server imports this module. Neither imports third-party packages, so that the guard starts fast and
needs little memory.
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
    """Hold, inside the block, the exclusive lock that serialises starting and stopping the server among processes.

    Waits for the lock without a timeout. It is not reentrant: a nested block in the same process waits forever.
    """
    with opened(directory / "control.lock") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """Open a lock file, and close its descriptor at the end of the block.

    This releases the lock, unless a child process has inherited the descriptor.
    """
    handle = open_file(path)
    try:
        yield handle
    finally:
        os.close(handle)


def open_file(path: Path) -> int:
    """Open a lock file, which is created if it does not exist. The caller must close the returned descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def try_lock(handle: int, kind: int) -> bool:
    """Try to acquire a lock, exclusive (`fcntl.LOCK_EX`) or shared (`fcntl.LOCK_SH`), without waiting.

    Returns whether it was acquired. If not, a lock of the other kind that the descriptor already had is lost.
    """
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
        return True
    return False
