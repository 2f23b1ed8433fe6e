"""Signal handlers that end a command by an exception, deferred while an exception would do harm or be lost.

Python raises the exception of a signal handler at the current position of the main thread. That is a problem
in two cases:

- `subprocess.Popen` acquires a lock and then waits for its process. An exception between the two leaves the
  lock locked, and the next `wait` never returns.
- During an import, C extensions and callbacks of weak references ignore exceptions. About one signal in fifty
  was lost while a command imported its modules.
"""

import signal
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FrameType

RETRY_SECONDS = 0.02

_depth = 0
# The signal that has not raised its exception yet.
_pending: int | None = None
_interrupts: Collection[int] = ()


def install(interrupts: Collection[int] = (signal.SIGINT,)) -> None:
    """Make SIGINT, SIGTERM and SIGHUP raise an exception in the main thread.

    The signals in `interrupts` raise `KeyboardInterrupt`, the others `SystemExit` with 128 + the number of the signal.
    Call `install` in the main thread. It also sets the handler of SIGALRM, which the program then can't use for anything
    else.
    """
    global _interrupts
    _interrupts = interrupts
    # A shell makes background processes ignore SIGINT, but a program that sends it wants the command to end.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _handle)
    signal.signal(signal.SIGALRM, lambda _number, frame: _raise_when_safe(frame))


@contextmanager
def deferred() -> Iterator[None]:
    """Defer signals inside the block: the last one that arrived raises its exception at the end of the outermost block.

    It does nothing in other threads than the main thread. It applies only to the signals of `install`.
    """
    global _depth
    if threading.current_thread() is not threading.main_thread():
        # Python runs signal handlers only in the main thread.
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
    """Raise the exception of the pending signal, except in a `deferred` block and during an import.

    The end of the block raises it later. During an import, a timer calls this function again after `RETRY_SECONDS`.
    """
    if _depth:
        return
    if _is_importing(frame):
        signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS)
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
    if number in _interrupts:
        raise KeyboardInterrupt
    if number is not None:
        sys.exit(128 + number)
