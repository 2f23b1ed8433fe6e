"""Output of log records: lines appended to a file or written to standard error."""

import contextlib
import logging
import os
import select
import stat
import threading
from pathlib import Path
from time import monotonic

STANDARD_ERROR = 2
# The path is checked with the first line that is written after this time.
CHECK_INTERVAL_SECONDS = 1.0
# A thread waits this long if standard error is a full pipe. After that, lines are dropped at once, until the reader of
# the pipe continues.
BLOCKED_MILLISECONDS = 1000


class LogFile:
    """A log file, or standard error if there is no path, or until the file can be opened.

    Each line is written by one system call, so that lines of several threads and processes do not mix. Only in a pipe, lines
    of more than 4096 bytes (`PIPE_BUF`) are written in pieces; they may mix, or lose their ends if the pipe is full. A line
    that cannot be written is dropped. After log rotation, which renames or removes the file, a new one is created, without a
    signal: lines go to the old file for at most `CHECK_INTERVAL_SECONDS`.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._descriptor = STANDARD_ERROR
        self._next_check = 0.0
        self._lock = threading.Lock()
        self._torn = False
        self._was_blocked = False

    def msg(self, line: bytes) -> None:
        """Write a line, which must end with a newline. It never raises. Several threads may call it.

        If standard error is a full pipe, the call may wait for `BLOCKED_MILLISECONDS`.
        """
        if self._path and monotonic() >= self._next_check:
            self._check(self._path)
        line = b"\n" + line if self._torn else line
        if self._descriptor != STANDARD_ERROR:
            self._write(line)
        elif len(line) <= select.PIPE_BUF or not _is_pipe():
            if not self._is_blocked():
                self._write(line)
        else:
            # A write of more than the free space of a pipe would block; one of PIPE_BUF does not, after `_is_blocked`.
            for begin in range(0, len(line), select.PIPE_BUF):
                if self._is_blocked():
                    self._torn = begin > 0
                    return
                self._write(line[begin : begin + select.PIPE_BUF])

    # The methods that structlog calls.
    log = debug = info = warning = error = critical = fatal = exception = msg

    def _write(self, data: bytes) -> None:
        try:
            self._torn = os.write(self._descriptor, data) < len(data)
        except OSError:
            return

    def _is_blocked(self) -> bool:
        """Whether standard error is a full pipe: a write of up to `PIPE_BUF` bytes would block until its reader continues."""
        poller = select.poll()
        poller.register(STANDARD_ERROR, select.POLLOUT)
        self._was_blocked = not poller.poll(0 if self._was_blocked else BLOCKED_MILLISECONDS)
        return self._was_blocked

    def _check(self, path: Path) -> None:
        """Open the file if none is open, or if the path does not lead to the open one. Errors are ignored."""
        with self._lock, contextlib.suppress(OSError):
            if monotonic() < self._next_check:
                return
            try:
                if self._descriptor == STANDARD_ERROR or not self._is_in_place(path):
                    self._open(path)
            finally:
                # Set last: other threads must not check while this one does.
                self._next_check = monotonic() + CHECK_INTERVAL_SECONDS

    def _open(self, path: Path) -> None:
        opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if self._descriptor == STANDARD_ERROR:
            self._descriptor = opened
            return
        # The descriptor keeps its number, because another thread may be about to write.
        os.dup2(opened, self._descriptor, inheritable=False)
        os.close(opened)

    def _is_in_place(self, path: Path) -> bool:
        try:
            return os.path.samestat(path.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False


def _is_pipe() -> bool:
    return stat.S_ISFIFO(os.fstat(STANDARD_ERROR).st_mode)


class LogFileHandler(logging.Handler):
    """A handler for Python's `logging`, which libraries use, that writes to a `LogFile`."""

    def __init__(self, file: LogFile) -> None:
        super().__init__()
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record. If it cannot be formatted, `logging` reports the error."""
        try:
            self._file.msg(self.format(record).encode("utf-8", "backslashreplace") + b"\n")
        except Exception:
            self.handleError(record)
