"""Signal handlers that end a command by an exception, deferred while an exception would do harm or be lost.

Python raises the exception of a signal handler at the current position of the main thread. That is a problem
in four cases:

- `subprocess.Popen` acquires a lock and then waits for its process. An exception between the two leaves the
  lock locked, and the next `wait` never returns.
- `contextlib` calls the end of a block. An exception before that skips it: a file lock would stay locked, and the
  command would wait for itself when it takes the lock again in order to stop.
- During an import, C extensions and callbacks of weak references ignore exceptions. About one signal in fifty
  was lost while a command imported its modules.
- Python prints and ignores exceptions in a `__del__` method, such as that of `subprocess.Popen`, in callbacks of weak
  references, and while it closes a generator.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Collection, Iterator
from types import FrameType

RETRY_SECONDS = 0.02

_depth = 0
# The signal that has not raised its exception yet.
_pending: int | None = None
# The last signal that has raised its exception.
_raised: int | None = None
_interrupts: Collection[int] = ()


def install(interrupts: Collection[int] = (signal.SIGINT,)) -> None:
    """Make SIGINT, SIGTERM and SIGHUP raise an exception in the main thread.

    The signals in `interrupts` raise `KeyboardInterrupt`, the others `SystemExit` with 128 + the number of the signal.
    Call `install` in the main thread. It also sets the handler of SIGALRM, which the program then can't use for anything
    else, and `sys.unraisablehook`.
    """
    global _interrupts
    _interrupts = interrupts
    # A shell makes background processes ignore SIGINT, but a program that sends it wants the command to end.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _handle)
    signal.signal(signal.SIGALRM, lambda _number, frame: _raise_when_safe(frame))
    sys.unraisablehook = _retry_ignored


@contextlib.contextmanager
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
    """Raise the exception of the pending signal, except in a `deferred` block, during an import and in `contextlib`.

    The end of the block raises it later. In the other cases, a timer calls this function again after `RETRY_SECONDS`.
    """
    if _depth:
        return
    if _is_importing(frame) or (frame and frame.f_code.co_filename == contextlib.__file__):
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
    global _pending, _raised
    number, _pending = _pending, None
    if number is None:
        return
    _raised = number
    if number in _interrupts:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _retry_ignored(ignored: "sys.UnraisableHookArgs") -> None:
    """Raise the exception of a signal again, `RETRY_SECONDS` after Python has ignored it. Print other exceptions."""
    global _pending
    if _raised is None or not issubclass(ignored.exc_type, KeyboardInterrupt | SystemExit):
        sys.__unraisablehook__(ignored)
        return
    _pending = _raised
    signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS)
