"""The two gunicorn instances of `make serve`: one for lookups, and one for all other requests, which must not delay lookups."""

import math
import os
from dataclasses import dataclass

from cdb import env

# The maximum number of requests, waiting or in progress, for each thread of the pool `others`. A thread can
# handle so many before their clients time out.
REQUESTS_OF_A_THREAD = 32
# PostgreSQL connections in addition to those of the pools: for commands, a second `make run`, psql.
OTHER_CONNECTIONS = 50


@dataclass(frozen=True)
class Pool:
    """A gunicorn instance of `workers` processes with `threads` threads each, and its database connections.

    Each thread may use one connection, so there are as many connections as threads. With `make serve`, the threads of a pool
    keep connections to PostgreSQL itself unless it `uses_pgbouncer`. While a deployment replaces the processes, the old ones
    and the new ones both have theirs. In containers all connections lead to PgBouncer, because many instances may share a
    database.
    """

    name: str
    workers: int
    threads: int
    uses_pgbouncer: bool = True

    @property
    def connections(self) -> int:
        """The total number of threads, which is also the number of connections."""
        return self.workers * self.threads

    @property
    def most_connections(self) -> int:
        """The largest number of connections that it opens to PostgreSQL with `make serve`, which is during a deployment."""
        return self.connections * (1 if self.uses_pgbouncer else 2)

    @property
    def database(self) -> str:
        """The name of the instance's database in PgBouncer."""
        return f"cdb_{self.name}"

    def database_on_replica(self, number: int) -> str:
        """The name in PgBouncer of the database on a streaming replica; `number` counts from 1."""
        return f"{self.database}_replica_{number}"


def cores_here() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def pools(cores: int | None = None) -> dict[str, Pool]:
    """Both instances by name, with CDB_THREADS threads in each process.

    The pool for lookups has CDB_WORKERS processes. If that is 0, it has one process more than `cores` (by default those of
    this machine), because a process does not use the CPU all the time. The other pool has half as many processes, but at
    least two, so that one remains while the other is replaced.
    """
    values = env.read()
    workers = values["CDB_WORKERS"] or (cores or cores_here()) + 1
    threads = values["CDB_THREADS"]
    # A lookup takes so little time that PgBouncer would be a twentieth of it.
    lookups = Pool("lookups", workers, threads, uses_pgbouncer=False)
    others = Pool("others", max(2, math.ceil(workers / 2)), threads)
    return {pool.name: pool for pool in (lookups, others)}


def connections(cores: int | None = None) -> int:
    """The number of connections that PostgreSQL should allow: the most of both pools, and `OTHER_CONNECTIONS`."""
    return sum(pool.most_connections for pool in pools(cores).values()) + OTHER_CONNECTIONS
