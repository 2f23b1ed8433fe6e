"""Commands that end when they are told to, also while the database works for them."""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator

import psycopg2
from django.db import Error, connection, connections

from cdb_rest.domain.errors import CdbError

# How often the statement that runs is cancelled, once the process was told to end.
CANCEL_SECONDS = 0.05
ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Inside the block, a signal that asks the process to end cancels whatever statement runs, or comes next.

    The driver waits in C, and Python's own handlers would run only after it, or in the middle of what the driver calls back.
    What the driver, or a service in its place, then says is neither raised nor logged. What is raised is what the signal
    means: `KeyboardInterrupt` or `SystemExit`. Signals are the main thread's; in other threads nothing is done.
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
    if interruption.told is not None:
        raise KeyboardInterrupt if interruption.told == signal.SIGINT else SystemExit(128 + interruption.told)
    if failure:
        raise failure


class _Interruption:
    """Signals that ask the process to end, noted by a thread, which then cancels the current connection's statements.

    `told` is the first one of them.
    """

    def __init__(self) -> None:
        self.told: int | None = None
        self._connection = connections[connection.alias]
        self._over = threading.Event()
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._handlers = {number: signal.signal(number, lambda *_: None) for number in ENDING}
        self._previous = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._watcher = threading.Thread(target=self._watch, name="interruption", daemon=True)
        self._watcher.start()

    def end(self) -> None:
        """Let signals mean again what they meant before."""
        signal.set_wakeup_fd(self._previous)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._over.set()
        os.close(self._writing)
        self._watcher.join()
        logging.disable(logging.NOTSET)
        os.close(self._reading)

    def _watch(self) -> None:
        while self.told is None and (number := os.read(self._reading, 1)):
            if number[0] in ENDING:
                self.told = number[0]
                logging.disable(logging.WARNING)
        while self.told is not None and not self._over.wait(CANCEL_SECONDS):
            with contextlib.suppress(psycopg2.Error, AttributeError):
                self._connection.connection.cancel()
