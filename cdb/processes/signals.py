"""Signals that ask a command to end, as exceptions that are not raised where they do harm or are lost.

An exception from a signal's handler is raised wherever the main thread is.

- `subprocess.Popen` takes a lock and then waits for its process. Raised between the two, the exception leaves the lock taken,
  and the next `wait` never returns.
- While a module is imported, C extensions and callbacks of weak references ignore exceptions: about one signal in fifty was
  lost while a command loaded its modules.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_SECONDS = 0.02

_depth = 0
# The signal that has not raised its exception yet.
_pending: int | None = None


def install() -> None:
    """Let SIGTERM and SIGHUP raise `SystemExit`, and SIGINT `KeyboardInterrupt`, in the main thread."""
    # A shell lets what it starts in the background ignore SIGINT, but a client that sends it wants the command to end.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _handle)
    signal.signal(signal.SIGALRM, lambda _number, frame: _raise_when_safe(frame))


@contextmanager
def held() -> Iterator[None]:
    """Inside the block no signal raises an exception; the last one that arrived raises it at the block's end."""
    global _depth
    if threading.current_thread() is not threading.main_thread():
        # Handlers run in the main thread alone.
        yield
        return
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _raise()


def _handle(number: int, frame: FrameType | None) -> None:
    global _pending
    _pending = number
    _raise_when_safe(frame)


def _raise_when_safe(frame: FrameType | None) -> None:
    """Raise the exception of the pending signal now, at the end of the block that holds it, or some moments later."""
    if _depth:
        return
    if _is_importing(frame):
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
    else:
        _raise()


def _is_importing(frame: FrameType | None) -> bool:
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _raise() -> None:
    global _pending
    number, _pending = _pending, None
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if number is not None:
        sys.exit(128 + number)
