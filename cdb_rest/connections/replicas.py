"""Lookups from streaming replicas, whose results are never older than the request.

A replica is always slightly behind the primary. So the primary confirms afterwards that the tag is still in the state from which
the result was made; otherwise the lookup is done there. A frozen tag needs no confirmation, because it never changes again.
"""

import itertools
import logging
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections

from cdb_rest import named_sql
from cdb_rest.observe import metrics

logger = logging.getLogger(__name__)
PRIMARY_STATE = named_sql.load("primary_state")
REPLICA_STATE = named_sql.load("replica_state")
CHECK_INTERVAL_SECONDS = 0.5
# Eight minutes of positions, at two per second.
MOST_MARKS = 1000


class Replica:
    """A replica, with its alias in Django's `DATABASES`. Threads may share it.

    `is_in_rotation` says whether lookups may use it; it is False at first. A thread of its own checks it (`check`). A lookup that
    fails takes it out at once.
    """

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.is_in_rotation = False
        # Positions of the primary's WAL that the replica has not reached, with the time when each was read, the oldest first.
        self._marks: deque[tuple[float, int]] = deque()
        self._system: str | None = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Send the queries of this thread to the replica inside the block, instead of to the primary."""
        primary = connections[DEFAULT_DB_ALIAS]
        connections[DEFAULT_DB_ALIAS] = connections[self.alias]
        try:
            yield
        finally:
            connections[DEFAULT_DB_ALIAS] = primary

    def leave(self, reason: object) -> None:
        """Take the replica out of rotation. Logged with the reason if it was in rotation."""
        if self.is_in_rotation:
            logger.warning("%s is out of rotation: %s", self.alias, " ".join(str(reason).split()))
        self.is_in_rotation = False

    def check(self) -> None:
        """Query both servers once, and put the replica into rotation or take it out.

        While the primary is down, only frozen tags can be looked up, for which the lag does not matter.
        """
        reason, lag = self._examine()
        if reason:
            self.leave(reason)
        elif not self.is_in_rotation:
            logger.warning("%s is in rotation", self.alias)
            self.is_in_rotation = True
        metrics.REPLICA_UP.labels(self.alias).set(self.is_in_rotation)
        metrics.REPLICA_LAG.labels(self.alias).set(lag)

    def _examine(self) -> tuple[object, float]:
        """Why lookups must not use the replica (None if they may), and its lag in seconds."""
        try:
            is_replica, position, system = _query(self.alias, REPLICA_STATE)
        except Error as error:
            return error, 0.0
        newest = self._primary_position()
        lag = self._lag(position) if newest is not None else 0.0
        if not is_replica:
            return "it is a primary, not a replica", lag
        if self._system is None:
            return "the primary has not responded since this process started", lag
        if system != self._system:
            return "it is a replica of another database", lag
        if newest is not None and position > newest:
            # So it has transactions that the primary does not have.
            return "it is ahead of the primary", lag
        if lag > settings.CDB_REPLICA_MAX_LAG_SECONDS:
            return f"it is {lag:.1f} s behind", lag
        return None, lag

    def watch(self) -> None:
        """Check the replica every `CHECK_INTERVAL_SECONDS`, until the process ends."""
        while True:
            try:
                self.check()
            except Exception as error:
                # For example, no file descriptor is left. The thread must go on, or the last state would stay forever.
                self.leave(error)
                logger.exception("monitoring %s failed", self.alias)
            sleep(CHECK_INTERVAL_SECONDS)

    def _primary_position(self) -> int | None:
        """The position of the primary's WAL in bytes; None if the primary does not respond."""
        seen = monotonic()
        try:
            position: int
            position, self._system = _query(DEFAULT_DB_ALIAS, PRIMARY_STATE)
        except Error:
            return None
        if len(self._marks) < MOST_MARKS and (not self._marks or position > self._marks[-1][1]):
            self._marks.append((seen, position))
        return position

    def _lag(self, position: int) -> float:
        """The time in seconds since the primary had a position that the replica has not reached."""
        while self._marks and self._marks[0][1] <= position:
            self._marks.popleft()
        return monotonic() - self._marks[0][0] if self._marks else 0.0


def _query(alias: str, statement: str) -> tuple[Any, ...]:
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(statement)
            row: tuple[Any, ...] = cursor.fetchone()
            return row
    except Error:
        connections[alias].close()
        raise


REPLICAS = [Replica(alias) for alias in connections if alias != DEFAULT_DB_ALIAS]
_turn = itertools.count()


def watch() -> None:
    """Start a thread for each replica that checks it. Threads do not survive a fork."""
    for replica in REPLICAS:
        threading.Thread(target=replica.watch, name=replica.alias, daemon=True).start()


def choose_replica() -> Replica | None:
    """The next replica in rotation (round robin), or None if the caller must use the primary."""
    ready = [replica for replica in REPLICAS if replica.is_in_rotation]
    return ready[next(_turn) % len(ready)] if ready else None
