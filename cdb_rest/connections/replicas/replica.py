"""One replica, as a serving process knows it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

from django.db import DEFAULT_DB_ALIAS, connections

from cdb_rest import named_sql
from cdb_rest.connections.deadlines import hurry
from cdb_rest.metrics import counts

logger = logging.getLogger(__name__)

HAS_POSITION = named_sql.load("replica_has_position")

# A replica that says nothing is not waited for as long as the primary is, because the primary can answer instead.
ANSWER_SECONDS = 2
# What was committed a moment ago is on its way, and there within milliseconds.
CATCH_UP_SECONDS = 0.02
CATCH_UP_STEP_SECONDS = 0.004


class Replica:
    """A replica by its alias among Django's databases.

    `is_in_rotation` says whether reads may go there; the watch decides about it, and a read that fails takes it out at once.
    `lag` is how far it is behind, in seconds.
    """

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.is_in_rotation = False
        self.lag = 0.0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Inside the block all that this thread asks the database is asked here; nothing can be written."""
        primary = connections[DEFAULT_DB_ALIAS]
        connections[DEFAULT_DB_ALIAS] = connections[self.alias]
        try:
            yield
        finally:
            connections[DEFAULT_DB_ALIAS] = primary

    def has(self, position: str) -> bool:
        """Whether the replica has all that the primary had committed at that position of its log; waits a moment for it.

        Raises an error of the database if it does not answer.
        """
        deadline = monotonic() + CATCH_UP_SECONDS
        with hurry(ANSWER_SECONDS), connections[self.alias].cursor() as cursor:
            while True:
                cursor.execute(HAS_POSITION, {"position": position})
                if cursor.fetchone()[0]:
                    return True
                if monotonic() > deadline:
                    return False
                sleep(CATCH_UP_STEP_SECONDS)

    def enter(self) -> None:
        """Let reads go there."""
        if not self.is_in_rotation:
            logger.warning("%s takes part in reading", self.alias)
        self.is_in_rotation = True

    def leave(self, reason: object) -> None:
        """Let no more reads go there, until it enters again."""
        if self.is_in_rotation:
            logger.warning("%s takes no part in reading: %s", self.alias, " ".join(str(reason).split()))
        self.is_in_rotation = False

    def failed(self, error: Exception) -> None:
        """Note that a read failed there."""
        self.count("failed")
        self.leave(error)

    def count(self, outcome: str) -> None:
        """Count what became of a read: served, behind, failed."""
        counts.REPLICA_READS.labels(self.alias, outcome).inc()

    def tell(self) -> None:
        """Let the metrics show how it is, as far as this process knows."""
        counts.REPLICA_UP.labels(self.alias).set(self.is_in_rotation)
        counts.REPLICA_LAG.labels(self.alias).set(self.lag)


def is_reading_from_one() -> bool:
    """Whether this thread is inside of a `reading` block."""
    return connections[DEFAULT_DB_ALIAS].alias != DEFAULT_DB_ALIAS
