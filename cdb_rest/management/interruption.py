"""Interruption of commands by signals, also during long SQL statements."""

import contextlib
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
from django.db import Error, connection, connections

from cdb_rest.rules.errors import CdbError

# Time between the cancel requests that follow the first signal, and until the end of the block is noticed.
CANCEL_SECONDS = 0.05
ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@contextlib.contextmanager
def interruptible(other: Callable[[], Any] = lambda: None) -> Iterator[Callable[[], None]]:
    """Make the SQL statements of the block interruptible by SIGINT, SIGTERM and SIGHUP. A context manager.

    Its value is a function that raises `InterruptedError` after a signal, for long work in Python.

    After a signal, the running statements of the default connection and of the one that `other` returns are cancelled every
    `CANCEL_SECONDS` until the block ends. Statements shorter than that may still succeed, even a COMMIT, and Python code is not
    interrupted.

    When the block ends, even without an error, `KeyboardInterrupt` is raised for SIGINT, otherwise `SystemExit` with
    the code 128 + the signal's number. It replaces a database error, `CdbError` or `InterruptedError` of the block, but no other
    exception.
    Between the signal and the end of the block, Python's `logging` drops records up to the level WARNING.

    Python's own signal handlers are not sufficient: the driver waits in C, so they would run only after the statement,
    or inside a callback of the driver. Only the main thread receives signals; in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    failure: Exception | None = None
    received: list[int] = []

    def check() -> None:
        if received:
            raise InterruptedError

    is_over = threading.Event()
    watcher = threading.Thread(
        target=_cancel, args=(connections[connection.alias], other, received, is_over), name="interruption", daemon=True
    )
    # The threads that are started from now on inherit the mask, so the signals wait for the watcher.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    watcher.start()
    try:
        yield check
    except (psycopg2.Error, Error, CdbError, InterruptedError) as error:
        failure = error
    finally:
        is_over.set()
        watcher.join()
        logging.disable(logging.NOTSET)
        # A signal that has just come is handled as without this block.
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if received:
        raise KeyboardInterrupt if received[0] == signal.SIGINT else SystemExit(128 + received[0])
    if failure:
        raise failure


def _cancel(database: Any, other: Callable[[], Any], received: list[int], is_over: threading.Event) -> None:
    """Wait for the first signal, which is added to `received`; then cancel the statements of a connection, until it is over."""
    while not is_over.is_set():
        if found := signal.sigtimedwait(ENDING, CANCEL_SECONDS):
            logging.disable(logging.WARNING)
            received.append(found.si_signo)
        if received:
            for open_connection in (database.connection, other()):
                with contextlib.suppress(psycopg2.Error, AttributeError):
                    open_connection.cancel()
