"""The state of one replica in a serving process."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

from django.db import DEFAULT_DB_ALIAS, connections

from cdb_rest import named_sql
from cdb_rest.connections.deadlines import database_timeout
from cdb_rest.metrics import counts

logger = logging.getLogger(__name__)

HAS_POSITION = named_sql.load("replica_has_position")

# Shorter than for the primary, because the primary can be used instead.
TIMEOUT_SECONDS = 2
# A transaction that was just committed reaches a replica within milliseconds.
CATCH_UP_SECONDS = 0.02
CATCH_UP_STEP_SECONDS = 0.004


class Replica:
    """A replica, with its alias in Django's `DATABASES`.

    `is_in_rotation` says whether reads may use it; it is False at first. The monitor decides that. A read that fails
    takes the replica out at once. `lag` is its replication lag in seconds at the last check to which both servers
    responded. Threads may share a replica.
    """

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.is_in_rotation = False
        self.lag = 0.0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Send the queries of this thread to the replica inside the block, instead of to the primary.

        The replica refuses writes. Queries in the block are not part of a transaction that began before it. The thread
        that began the block must end it.
        """
        primary = connections[DEFAULT_DB_ALIAS]
        connections[DEFAULT_DB_ALIAS] = connections[self.alias]
        try:
            yield
        finally:
            connections[DEFAULT_DB_ALIAS] = primary

    def has(self, position: str) -> bool:
        """Whether the replica has replayed the primary's WAL up to `position`, a text such as "0/3000060".

        Waits up to `CATCH_UP_SECONDS` for it. False for a server that is no replica. Raises `django.db.Error` if the
        replica does not respond.
        """
        deadline = monotonic() + CATCH_UP_SECONDS
        with database_timeout(TIMEOUT_SECONDS), connections[self.alias].cursor() as cursor:
            while True:
                cursor.execute(HAS_POSITION, {"position": position})
                if cursor.fetchone()[0]:
                    return True
                if monotonic() > deadline:
                    return False
                sleep(CATCH_UP_STEP_SECONDS)

    def enter(self) -> None:
        """Put the replica into rotation. Logged if it was not in rotation."""
        if not self.is_in_rotation:
            logger.warning("%s is in rotation", self.alias)
        self.is_in_rotation = True

    def leave(self, reason: object) -> None:
        """Take the replica out of rotation. Logged with the reason if it was in rotation."""
        if self.is_in_rotation:
            logger.warning("%s is out of rotation: %s", self.alias, " ".join(str(reason).split()))
        self.is_in_rotation = False

    def failed(self, error: Exception) -> None:
        """Record that a read failed, and take the replica out of rotation."""
        self.count("failed")
        self.leave(error)

    def count(self, outcome: str) -> None:
        """Count a read by its outcome: "served", "failed", or "behind" for a replica that lacked a recent commit."""
        counts.REPLICA_READS.labels(self.alias, outcome).inc()

    def export_metrics(self) -> None:
        """Set the gauges of the metrics to the state in this process."""
        counts.REPLICA_UP.labels(self.alias).set(self.is_in_rotation)
        counts.REPLICA_LAG.labels(self.alias).set(self.lag)


def is_reading_from_one() -> bool:
    """Whether this thread is inside a `reading` block."""
    return connections[DEFAULT_DB_ALIAS].alias != DEFAULT_DB_ALIAS
