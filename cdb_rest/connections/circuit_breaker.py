"""A circuit breaker: while the database is down, one thread at a time tries to connect, and the others fail at once.

docs/decisions/0014-libraries-considered.md says why no library does it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import psycopg2

# No attempt begins for this time after a failure.
PAUSE_SECONDS = 0.5


class CircuitBreaker:
    """The circuit breaker of one server, shared by the threads of a process. At first it is closed.

    Existing connections do not check it. They stay in use, so that an error which concerns new ones alone, such as too
    many connections, does not stop the work on the others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_open = False
        self._has_attempt = False
        self._next_attempt = 0.0

    def open(self) -> None:
        """Open the circuit, because an attempt to connect failed or the database did not respond in time."""
        with self._lock:
            self._is_open = True
            self._next_attempt = monotonic() + PAUSE_SECONDS

    @contextmanager
    def attempt(self) -> Iterator[bool]:
        """A context manager: the caller connects inside the block. It yields whether the circuit was open before.

        Raises `psycopg2.OperationalError` at once if the circuit is open and another thread tries to connect, or
        `PAUSE_SECONDS` have not passed. An `OperationalError` inside the block opens the circuit and is raised again. A
        block without an error closes the circuit. Other errors do not change it.
        """
        with self._lock:
            was_open = self._is_open
            if was_open and (self._has_attempt or monotonic() < self._next_attempt):
                raise psycopg2.OperationalError("the database did not respond a moment ago; it is not tried again yet")
            self._has_attempt = was_open
        try:
            yield was_open
        except psycopg2.OperationalError:
            self.open()
            raise
        else:
            with self._lock:
                self._is_open = False
        finally:
            if was_open:
                with self._lock:
                    self._has_attempt = False
