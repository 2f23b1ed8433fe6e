"""The back of the envelope: what a machine of some size takes in lookups, hop by hop, and what it runs out of first.

The numbers of processes, threads and connections are those that `make serve` would start there: from
the same functions, and from the files in `deploy/` themselves. The rest is queueing theory
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

# Of all cores together, for a lookup of 200 rows at a random moment among 5.2 million IOVs: 2 cores gave 538 answers a second
# (docs/performance.md, "Serving as in production").
SERVICE_SECONDS = 2 / 538
# What a connection takes of a server's memory, in bytes, and more of them than this no server should have: the rule by which
# a large provider of PostgreSQL sets max_connections.
CONNECTION_BYTES, MOST_CONNECTIONS = 9_531_392, 5000
MEGABYTE = 2**20


@dataclass(frozen=True)
class Hop:
    """What a part of the way takes at once, and what sets it."""

    name: str
    what: str
    count: int
    set_by: str


@dataclass(frozen=True)
class Bound:
    """A resource, and how many answers a second it allows."""

    resource: str
    answers_per_second: float


@dataclass(frozen=True)
class Capacity:
    """What a machine takes. `cores` and `memory_megabytes` are its size; `service_seconds` is the time that an answer takes of
    the cores; `users` ask, wait for the answer, think for `think_seconds`, and ask again."""

    cores: int
    memory_megabytes: int
    service_seconds: float
    users: int
    think_seconds: float

    def hops(self) -> Iterator[Hop]:
        """From the client to the database."""
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
        yield Hop("gunicorn -> PgBouncer", "connections", lookups.connections + others.connections, "threads")
        yield Hop("", "connections at most", _numbers(r"^max_client_conn = (\d+)", ini)[0], "max_client_conn")
        for pool in (lookups, others):
            yield Hop(f"PgBouncer -> PostgreSQL ({pool.database})", "connections", pool.connections, "pool_size")
        yield Hop("PostgreSQL", "max_connections", int(self._postgresql()["max_connections"]), "pools, and some")
        yield Hop("", "connections that fit", self.connections_that_fit, "memory")

    @property
    def connections_that_fit(self) -> int:
        """How many connections this memory is good for."""
        return min(self.memory_megabytes * MEGABYTE // CONNECTION_BYTES, MOST_CONNECTIONS)

    def bounds(self) -> list[Bound]:
        """What lookups can run out of, the scarcest first."""
        lookups = pools(self.cores)["lookups"]
        share = min(1, self.connections_that_fit / connections(self.cores))
        servers = {
            "cores": self.cores,
            "gunicorn's processes": lookups.workers,
            "gunicorn's threads, and PgBouncer's connections": lookups.connections,
            "memory for PostgreSQL's connections": max(1, math.floor(lookups.connections * share)),
        }
        bounds = [Bound(name, count / self.service_seconds) for name, count in servers.items()]
        return sorted(bounds, key=lambda bound: bound.answers_per_second)

    @property
    def most_per_second(self) -> float:
        """How many lookups a second it answers."""
        return self.bounds()[0].answers_per_second

    @property
    def queue(self) -> Queue:
        """The users before the servers."""
        return Queue(self.most_per_second, self.service_seconds, self.users, self.think_seconds)

    @property
    def verdict(self) -> str:
        """Whether the users' rate fits, in a sentence."""
        if self.queue.utilisation >= 1:
            limit = env.read()["CDB_QUEUE_TIMEOUT_SECONDS"]
            beyond = (
                f", more than CDB_QUEUE_TIMEOUT_SECONDS ({limit}): many get 504"
                if self.queue.response_seconds > limit
                else ""
            )
            return f"does not fit: users wait {self.queue.response_seconds:,.1f} s for an answer{beyond}"
        if self.queue.utilisation > COMFORTABLE:
            return "barely fits: a little more, and the queue grows"
        return "fits"

    def settings_of_postgresql(self) -> dict[str, str]:
        """What deploy/postgresql.conf would say of connections and memory."""
        names = ("max_connections", "shared_buffers", "effective_cache_size", "work_mem", "maintenance_work_mem")
        return {name: self._postgresql()[name] for name in names}

    def _postgresql(self) -> dict[str, str]:
        return postgresql.options(self.memory_megabytes, self.cores)


def _numbers(pattern: str, text: str) -> list[int]:
    return [int(number) for number in re.findall(pattern, text, re.MULTILINE)]


def _limit(zone: str, conf: str) -> tuple[int, str]:
    return _numbers(rf"limit_conn {zone} (\d+);", conf)[0], f"limit_conn {zone}"
