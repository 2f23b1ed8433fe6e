"""Threads of a serving process that monitor the replicas: whether they respond, and their replication lag."""

import logging
import threading
from collections import deque
from time import monotonic, sleep
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections

from cdb_rest import named_sql
from cdb_rest.connections.deadlines import database_timeout
from cdb_rest.connections.replicas.replica import TIMEOUT_SECONDS, Replica

logger = logging.getLogger(__name__)

PRIMARY_STATE = named_sql.load("primary_state")
REPLICA_STATE = named_sql.load("replica_state")

CHECK_INTERVAL_SECONDS = 0.5
# Eight minutes of positions, at two per second.
MOST_MARKS = 1000


class Monitor:
    """The monitor of one replica. Only one thread may use it.

    Between checks it keeps positions of the primary's WAL and the times when it read them, to calculate the lag.
    """

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        # Positions of the primary's WAL that the replica has not reached, with the time when each was read. The oldest
        # one is the first.
        self._marks: deque[tuple[float, int]] = deque()
        self._system: str | None = None

    def check(self) -> None:
        """Query both servers once, and put the replica into rotation or take it out.

        Database errors are handled: a replica that fails is taken out.
        """
        try:
            is_replica, position, system = self._query(self.replica.alias, REPLICA_STATE)
        except Error as error:
            self.replica.leave(error)
            return
        newest = self._primary_position()
        if not is_replica:
            self.replica.leave("it is a primary, not a replica")
        elif self._system is not None and system != self._system:
            self.replica.leave("it is a replica of another database")
        elif newest is not None and position > newest:
            # So it has transactions that the primary does not have.
            self.replica.leave("it is ahead of the primary")
        elif self._system is None:
            self.replica.leave("the primary has not responded since this process started")
        elif newest is None:
            # The lag is unknown while the primary is down. Only frozen tags are readable then, for which the lag does not matter.
            self.replica.enter()
        else:
            self._check_lag(position)

    def _primary_position(self) -> int | None:
        """The position of the primary's WAL in bytes; None if the primary does not respond."""
        seen = monotonic()
        try:
            position: int
            position, self._system = self._query(DEFAULT_DB_ALIAS, PRIMARY_STATE)
        except Error:
            return None
        if len(self._marks) < MOST_MARKS and (not self._marks or position > self._marks[-1][1]):
            self._marks.append((seen, position))
        return position

    def _check_lag(self, position: int) -> None:
        while self._marks and self._marks[0][1] <= position:
            self._marks.popleft()
        self.replica.lag = monotonic() - self._marks[0][0] if self._marks else 0.0
        if self.replica.lag > settings.CDB_REPLICA_MAX_LAG_SECONDS:
            self.replica.leave(f"it is {self.replica.lag:.1f} s behind")
        else:
            self.replica.enter()

    @staticmethod
    def _query(alias: str, statement: str) -> tuple[Any, ...]:
        try:
            with database_timeout(TIMEOUT_SECONDS), connections[alias].cursor() as cursor:
                cursor.execute(statement)
                row: tuple[Any, ...] = cursor.fetchone()
                return row
        except Error:
            connections[alias].close()
            raise


def start(replica: Replica) -> threading.Thread:
    """Start a thread that checks the replica every `CHECK_INTERVAL_SECONDS` until the process ends."""
    thread = threading.Thread(target=_run, args=[Monitor(replica)], name=replica.alias, daemon=True)
    thread.start()
    return thread


def _run(monitor: Monitor) -> None:
    while True:
        try:
            monitor.check()
            monitor.replica.export_metrics()
        except Exception as error:
            # For example, no file descriptor is left. The thread must go on: without it, the last state would stay forever.
            monitor.replica.leave(error)
            logger.exception("monitoring %s failed", monitor.replica.alias)
        sleep(CHECK_INTERVAL_SECONDS)
