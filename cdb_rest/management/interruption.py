"""Interruption of commands by signals, also during long SQL statements."""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import psycopg2
from django.db import Error, connection, connections

from cdb_rest.domain.errors import CdbError

# Time between the cancel requests that follow the first signal.
CANCEL_SECONDS = 0.05
ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Make the SQL statements of the block interruptible by SIGINT, SIGTERM and SIGHUP. A context manager.

    After a signal, the running statement of the default connection is cancelled every `CANCEL_SECONDS` until the block
    ends. Statements shorter than that may still succeed, even a COMMIT, and Python code is not interrupted.

    When the block ends, even without an error, `KeyboardInterrupt` is raised for SIGINT, otherwise `SystemExit` with
    the code 128 + the signal's number. It replaces a database error or `CdbError` of the block, but no other exception.
    Between the signal and the end of the block, Python's `logging` drops records up to the level WARNING.

    Python's own signal handlers are not sufficient: the driver waits in C, so they would run only after the statement,
    or inside a callback of the driver. Only the main thread receives signals; in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interruption = _Interruption()
    failure = None
    try:
        yield
    except (psycopg2.Error, Error, CdbError) as error:
        failure = error
    finally:
        interruption.end()
    if interruption.received is not None:
        raise KeyboardInterrupt if interruption.received == signal.SIGINT else SystemExit(128 + interruption.received)
    if failure:
        raise failure


class _Interruption:
    """A thread that receives termination signals, and then cancels the statements of the default connection.

    `received` is the number of the first signal, or None.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._connection = connections[connection.alias]
        self._over = threading.Event()
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._handlers = {number: signal.signal(number, self._receive) for number in ENDING}
        self._previous = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._watcher = threading.Thread(target=self._watch, name="interruption", daemon=True)
        self._watcher.start()

    def _receive(self, number: int, _frame: FrameType | None = None) -> None:
        """Store the first signal. Also a signal handler, because the pipe misses signals while it is set up and removed."""
        if self.received is None:
            self.received = number
            logging.disable(logging.WARNING)

    def end(self) -> None:
        """Stop the thread, restore the previous signal handlers, and enable all logging again."""
        signal.set_wakeup_fd(self._previous)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._over.set()
        os.close(self._writing)
        self._watcher.join()
        logging.disable(logging.NOTSET)
        os.close(self._reading)

    def _watch(self) -> None:
        while self.received is None and (number := os.read(self._reading, 1)):
            if number[0] in ENDING:
                self._receive(number[0])
        while self.received is not None and not self._over.wait(CANCEL_SECONDS):
            with contextlib.suppress(psycopg2.Error, AttributeError):
                self._connection.connection.cancel()
