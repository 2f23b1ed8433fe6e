"""The two gunicorn instances: lookups, which are cheap and many, and others, which must not get in their way."""

import math
import os
from dataclasses import dataclass

from cdb import env

# In the pool of writes and long reads: requests that wait or are in progress, for each thread. It does these before their
# clients lose patience.
REQUESTS_OF_A_THREAD = 32
# Connections of PostgreSQL beside those of the pools: commands, a second `make run`, psql.
OTHER_CONNECTIONS = 50


@dataclass(frozen=True)
class Pool:
    """A gunicorn instance, and the share of the database's connections that it has.

    Each thread may hold one connection, so there are as many of them as threads.
    """

    name: str
    workers: int
    threads: int

    @property
    def connections(self) -> int:
        """Threads in all, and connections."""
        return self.workers * self.threads

    @property
    def database(self) -> str:
        """The name by which the instance asks PgBouncer for the database."""
        return f"cdb_{self.name}"

    def database_on_replica(self, number: int) -> str:
        """The name by which it asks for the database on a streaming replica."""
        return f"{self.database}_replica_{number}"


def cores_here() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def pools(cores: int | None = None) -> dict[str, Pool]:
    """Both instances by name, sized by the settings, or for this machine or one of so many cores.

    Lookups get one process more than there are cores, because a process does not compute all the time; the others half as
    many, but two, so that one is there while the other is replaced.
    """
    values = env.read()
    workers = values["CDB_WORKERS"] or (cores or cores_here()) + 1
    threads = values["CDB_THREADS"]
    lookups = Pool("lookups", workers, threads)
    others = Pool("others", max(2, math.ceil(workers / 2)), threads)
    return {pool.name: pool for pool in (lookups, others)}


def connections(cores: int | None = None) -> int:
    """How many connections PostgreSQL should take."""
    return sum(pool.connections for pool in pools(cores).values()) + OTHER_CONNECTIONS
