"""A circuit breaker: while the database is away, one thread of a process tries to connect, and the others fail at once.

docs/decisions/0014-libraries-considered.md says why no library does it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import psycopg2

from cdb_rest.metrics import counts

# How long nobody tries again after a failure.
PAUSE_SECONDS = 0.5


class CircuitBreaker:
    """What the threads of a process know of a database that is away: one of them tries, the others are told at once.

    Only opening a connection asks here. Connections that are open go on, so that a refusal which concerns new ones alone,
    such as too many of them, does not end the others' work.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_on = False
        self._is_being_tried = False
        self._next_try = 0.0

    def began(self) -> None:
        """Note that the database did not answer."""
        with self._lock:
            if not self._is_on:
                counts.OUTAGES.inc()
            self._is_on = True
            self._next_try = monotonic() + PAUSE_SECONDS

    @contextmanager
    def trying(self) -> Iterator[bool]:
        """Try inside the block whether the database answers; the value says whether it was away before.

        Raises `psycopg2.OperationalError` at once while it is known to be away and it is not this thread's turn to try.
        """
        with self._lock:
            was_on = self._is_on
            if was_on and (self._is_being_tried or monotonic() < self._next_try):
                counts.CONNECTIONS.labels("not tried").inc()
                raise psycopg2.OperationalError("the database was away a moment ago, and is not tried again yet")
            self._is_being_tried = was_on
        try:
            yield was_on
        except psycopg2.OperationalError:
            counts.CONNECTIONS.labels("failed").inc()
            self.began()
            raise
        else:
            counts.CONNECTIONS.labels("opened").inc()
            with self._lock:
                self._is_on = False
        finally:
            if was_on:
                with self._lock:
                    self._is_being_tried = False
