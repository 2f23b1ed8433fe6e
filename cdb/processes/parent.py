"""Starting processes that end with their parent."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Iterator

PR_SET_PDEATHSIG = 1
# The signals that end a program.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_with_parent(number: int = signal.SIGTERM) -> None:
    """Let Linux send this process a signal when the thread that started it ends; Linux forgets it at a change of the user."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl:
        prctl(PR_SET_PDEATHSIG, number)


@contextlib.contextmanager
def starting_child(number: int = signal.SIGTERM) -> Iterator[Callable[[], None]]:
    """Block `ENDING` inside the block, so that no child is lost; yields its `preexec_fn`, which calls `end_with_parent`."""
    mask, parent = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING), os.getpid()

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        end_with_parent(number)
        # It may have ended before.
        if os.getppid() != parent:
            os._exit(1)

    try:
        yield prepare
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
