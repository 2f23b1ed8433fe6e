"""Looking after the replicas, in threads of the serving process: which answer, and how far they are behind."""

import logging
import threading
from collections import deque
from time import monotonic, sleep
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections

from cdb_rest import named_sql
from cdb_rest.connections.deadlines import hurry
from cdb_rest.connections.replicas.replica import ANSWER_SECONDS, Replica

logger = logging.getLogger(__name__)

PRIMARY_STATE = named_sql.load("primary_state")
REPLICA_STATE = named_sql.load("replica_state")

LOOK_SECONDS = 0.5
# At two a second, eight minutes of a log that the replica has not got.
MOST_MARKS = 1000


class Watch:
    """What is known of one replica and of the primary's log, from look to look."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        # Positions of the primary's log that the replica has not reached, with the time when each was seen, oldest first.
        self._marks: deque[tuple[float, int]] = deque()
        self._system: str | None = None

    def look(self) -> None:
        """Ask both servers once, and decide whether the replica takes part in reading."""
        try:
            is_replica, position, system = self._ask(self.replica.alias, REPLICA_STATE)
        except Error as error:
            self.replica.leave(error)
            return
        newest = self._look_at_primary()
        if not is_replica:
            self.replica.leave("it is a primary, not a replica")
        elif self._system is not None and system != self._system:
            self.replica.leave("it is a replica of another database")
        elif newest is not None and position > newest:
            # It got there on a way of its own: no replica has what its primary has not.
            self.replica.leave("it is ahead of the primary")
        elif self._system is None:
            self.replica.leave("the primary has never said which database it is")
        elif newest is None:
            # Nobody can tell how far it is behind, and for frozen tags, the only ones that can be answered now, nobody needs to.
            self.replica.enter()
        else:
            self._judge(position)

    def _look_at_primary(self) -> int | None:
        """The position of the primary's log, or None where it does not answer."""
        seen = monotonic()
        try:
            position: int
            position, self._system = self._ask(DEFAULT_DB_ALIAS, PRIMARY_STATE)
        except Error:
            return None
        if len(self._marks) < MOST_MARKS and (not self._marks or position > self._marks[-1][1]):
            self._marks.append((seen, position))
        return position

    def _judge(self, position: int) -> None:
        while self._marks and self._marks[0][1] <= position:
            self._marks.popleft()
        self.replica.lag = monotonic() - self._marks[0][0] if self._marks else 0.0
        if self.replica.lag > settings.CDB_REPLICA_MAX_LAG_SECONDS:
            self.replica.leave(f"it is {self.replica.lag:.1f} s behind")
        else:
            self.replica.enter()

    @staticmethod
    def _ask(alias: str, statement: str) -> tuple[Any, ...]:
        try:
            with hurry(ANSWER_SECONDS), connections[alias].cursor() as cursor:
                cursor.execute(statement)
                row: tuple[Any, ...] = cursor.fetchone()
                return row
        except Error:
            connections[alias].close()
            raise


def start(replica: Replica) -> threading.Thread:
    """Watch the replica as long as this process lives."""
    thread = threading.Thread(target=_keep_looking, args=[Watch(replica)], name=replica.alias, daemon=True)
    thread.start()
    return thread


def _keep_looking(watch: Watch) -> None:
    while True:
        try:
            watch.look()
            watch.replica.tell()
        except Exception as error:
            # Such as no descriptor being left. Nobody would start this thread again, and what it said last would stay.
            watch.replica.leave(error)
            logger.exception("looking after %s failed", watch.replica.alias)
        sleep(LOOK_SECONDS)
