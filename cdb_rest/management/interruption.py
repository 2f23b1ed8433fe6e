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
    waiting = connections[connection.alias]
    told: list[int] = []
    over = threading.Event()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def watch() -> None:
        while number := os.read(reading, 1):
            if number[0] in ENDING:
                told.append(number[0])
                logging.disable(logging.WARNING)
                break
        while told and not over.wait(CANCEL_SECONDS):
            with contextlib.suppress(psycopg2.Error, AttributeError):
                waiting.connection.cancel()

    watcher = threading.Thread(target=watch, name="interruption", daemon=True)
    handlers = {number: signal.signal(number, lambda *_: None) for number in ENDING}
    previous = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watcher.start()
    failure = None
    try:
        yield
    except (psycopg2.Error, Error, CdbError) as error:
        failure = error
    finally:
        signal.set_wakeup_fd(previous)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        over.set()
        os.close(writing)
        watcher.join()
        logging.disable(logging.NOTSET)
        os.close(reading)
    if told:
        raise KeyboardInterrupt if told[0] == signal.SIGINT else SystemExit(128 + told[0])
    if failure:
        raise failure
