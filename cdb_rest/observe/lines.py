"""Where records go: lines at the end of a file, or on standard error."""

import contextlib
import logging
import os
import select
import threading
from pathlib import Path
from time import monotonic

STANDARD_ERROR = 2
# How long records may go on into a file that was renamed.
LOOK_SECONDS = 1.0
# How long a reader of standard error may be late, once; until it reads again, nobody waits for it.
LATE_MILLISECONDS = 1000


class Lines:
    """Lines appended to a file, or to standard error where there is no path or nothing can be opened there.

    Whole lines by single calls of the kernel, so that those of several threads and processes do not mix. Nothing is ever
    raised: a line that can't be written is lost, and the request goes on. A file that was renamed or removed, as for its
    rotation, is made anew within a second, without a signal.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._descriptor = STANDARD_ERROR
        self._next_look = 0.0
        self._lock = threading.Lock()
        self._torn = False
        self._was_stuck = False

    def msg(self, line: bytes) -> None:
        """Write a line that ends as lines do."""
        if self._path and monotonic() >= self._next_look:
            self._look(self._path)
        if self._descriptor == STANDARD_ERROR and self._is_stuck():
            return
        try:
            written = os.write(self._descriptor, b"\n" + line if self._torn else line)
        except OSError:
            return
        self._torn = written < len(line)

    # The names by which structlog's loggers call it.
    log = debug = info = warning = error = critical = fatal = exception = msg

    def _is_stuck(self) -> bool:
        """Whether standard error is a full pipe, in which a request would wait as long as nobody reads."""
        poller = select.poll()
        poller.register(STANDARD_ERROR, select.POLLOUT)
        self._was_stuck = not poller.poll(0 if self._was_stuck else LATE_MILLISECONDS)
        return self._was_stuck

    def _look(self, path: Path) -> None:
        """Open the file, if the path does not lead to the one that is open."""
        with self._lock, contextlib.suppress(OSError):
            if monotonic() < self._next_look:
                return
            try:
                if self._descriptor == STANDARD_ERROR or not self._is_in_place(path):
                    self._open(path)
            finally:
                # Others wait for this one to be done.
                self._next_look = monotonic() + LOOK_SECONDS

    def _open(self, path: Path) -> None:
        opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if self._descriptor == STANDARD_ERROR:
            self._descriptor = opened
            return
        # Under the same number, because another thread may be about to write.
        os.dup2(opened, self._descriptor, inheritable=False)
        os.close(opened)

    def _is_in_place(self, path: Path) -> bool:
        try:
            return os.path.samestat(path.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False


class LineHandler(logging.Handler):
    """Sends the records of Python's own `logging`, which libraries use, to the same place."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; one that can't be put into words is reported as Python does it."""
        try:
            self._lines.msg(self.format(record).encode("utf-8", "backslashreplace") + b"\n")
        except Exception:
            self.handleError(record)
