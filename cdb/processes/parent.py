"""Ending with the parent process."""

import ctypes
import signal

PR_SET_PDEATHSIG = 1


def end_with_parent(number: int = signal.SIGTERM) -> None:
    """Let Linux send this process a signal when the thread that started it ends, however that ends; elsewhere do nothing.

    Linux forgets it at a change of the user, and a child process does not inherit it.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl:
        prctl(PR_SET_PDEATHSIG, number)
