"""An estimate of the lookups per second that a machine can serve, with the limits of each hop and the bottleneck.

The numbers of processes, threads and connections are those that `make serve` would use on that machine. They
come from the same functions and from the files in `deploy/`. The rest is queueing theory
(`cdb/management/queueing.py`).
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cdb import env
from cdb.management.queueing import COMFORTABLE, Queue
from cdb.serving import nginx_configuration, postgresql, templates
from cdb.serving.pools import REQUESTS_OF_A_THREAD, connections, pools

# CPU time, in all programs, of a lookup of 200 rows at a random moment among 5.2 million IOVs: 2 cores served
# 538 lookups per second (docs/results.md, "Serving as in production").
SERVICE_SECONDS = 2 / 538
# The memory of PostgreSQL for one connection, and the maximum number of connections: the rule by which a
# large provider of PostgreSQL sets max_connections.
CONNECTION_BYTES, MOST_CONNECTIONS = 9_531_392, 5000
MEGABYTE = 2**20


@dataclass(frozen=True)
class Hop:
    """One limit of a hop between client and database: how many of `what` it has at a time, and what sets the number.

    An empty `name` means another limit of the hop before.
    """

    name: str
    what: str
    count: int
    set_by: str


@dataclass(frozen=True)
class Bound:
    """A resource, and the number of responses per second that it allows."""

    resource: str
    answers_per_second: float


@dataclass(frozen=True)
class Capacity:
    """The estimated capacity of a machine with `cores` cores and `memory_megabytes` MiB of memory.

    `service_seconds` is the CPU time of one response, in all programs together. Each of `users` sends a request,
    waits for the response, thinks for `think_seconds`, and repeats. CDB_WORKERS, CDB_THREADS and
    CDB_QUEUE_TIMEOUT_SECONDS are those of this process.
    """

    cores: int
    memory_megabytes: int
    service_seconds: float
    users: int
    think_seconds: float

    def hops(self) -> Iterator[Hop]:
        """The limits of each hop, in the order from the client to the database."""
        conf, ini = (templates.source(name) for name in (nginx_configuration.CONFIGURATION, "pgbouncer.ini"))
        each = pools(self.cores)
        lookups, others = each["lookups"], each["others"]
        waiting = sum(_numbers(r"max_conns=(\d+)", conf))
        yield Hop("clients -> nginx", "processes", nginx_configuration.processes(self.cores), "cores")
        yield Hop("", "lookups at once", *_limit("lookups_in_progress", conf))
        yield Hop("", "other requests at once", REQUESTS_OF_A_THREAD * others.connections, "threads")
        yield Hop("nginx -> gunicorn (lookups)", "requests at once, most waiting", waiting, "max_conns")
        for pool in (lookups, others):
            name = f"gunicorn ({pool.name})"
            yield Hop(name, "processes", pool.workers, "CDB_WORKERS" if env.read()["CDB_WORKERS"] else "cores")
            yield Hop("", "threads in all", pool.connections, "CDB_THREADS")
        yield Hop("gunicorn (lookups) -> PostgreSQL", "connections", lookups.connections, "threads")
        yield Hop("gunicorn (others) -> PgBouncer", "connections", others.connections, "threads")
        yield Hop("", "connections at most", _numbers(r"^max_client_conn = (\d+)", ini)[0], "max_client_conn")
        yield Hop(f"PgBouncer -> PostgreSQL ({others.database})", "connections", others.connections, "pool_size")
        yield Hop("PostgreSQL", "max_connections", int(self._postgresql()["max_connections"]), "pools, and some")
        yield Hop("", "connections that fit", self.connections_that_fit, "memory")

    @property
    def connections_that_fit(self) -> int:
        """The number of connections for which the memory suffices, at most `MOST_CONNECTIONS`."""
        return min(self.memory_megabytes * MEGABYTE // CONNECTION_BYTES, MOST_CONNECTIONS)

    def bounds(self) -> list[Bound]:
        """The resources that limit lookups, the scarcest first."""
        lookups = pools(self.cores)["lookups"]
        share = min(1, self.connections_that_fit / connections(self.cores))
        servers = {
            "cores": self.cores,
            "gunicorn's processes": lookups.workers,
            "gunicorn's threads, and their connections": lookups.connections,
            "memory for PostgreSQL's connections": max(1, math.floor(lookups.connections * share)),
        }
        bounds = [Bound(name, count / self.service_seconds) for name, count in servers.items()]
        return sorted(bounds, key=lambda bound: bound.answers_per_second)

    @property
    def most_per_second(self) -> float:
        """The maximum number of lookups per second."""
        return self.bounds()[0].answers_per_second

    @property
    def queue(self) -> Queue:
        """The queue of the users at the scarcest resource."""
        return Queue(self.most_per_second, self.service_seconds, self.users, self.think_seconds)

    @property
    def verdict(self) -> str:
        """Whether the machine can serve the users, as a phrase."""
        if self.queue.utilisation >= 1:
            limit = env.read()["CDB_QUEUE_TIMEOUT_SECONDS"]
            beyond = (
                f", longer than CDB_QUEUE_TIMEOUT_SECONDS ({limit}): many requests get 504"
                if self.queue.response_seconds > limit
                else ""
            )
            return f"does not fit: users wait {self.queue.response_seconds:,.1f} s for a response{beyond}"
        if self.queue.utilisation > COMFORTABLE:
            return "barely fits: with slightly more load, the queue grows"
        return "fits"

    def settings_of_postgresql(self) -> dict[str, str]:
        """The settings of deploy/postgresql.conf for connections and memory, by name."""
        names = ("max_connections", "shared_buffers", "effective_cache_size", "work_mem", "maintenance_work_mem")
        return {name: self._postgresql()[name] for name in names}

    def _postgresql(self) -> dict[str, str]:
        return postgresql.options(self.memory_megabytes, self.cores)


def _numbers(pattern: str, text: str) -> list[int]:
    return [int(number) for number in re.findall(pattern, text, re.MULTILINE)]


def _limit(zone: str, conf: str) -> tuple[int, str]:
    return _numbers(rf"limit_conn {zone} (\d+);", conf)[0], f"limit_conn {zone}"
