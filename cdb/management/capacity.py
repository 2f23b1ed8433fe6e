"""The back of the envelope: what a machine of some size takes in lookups, hop by hop, and what it runs out of first.

The numbers of processes, threads and connections are those that `make serve` would start there: from the same functions, and
from the files in `deploy/` themselves. The rest is arithmetic:

- arrivals a second = users / (service time + think time), and answers a second = servers / service time
  (Little's law; Lazowska, Zahorjan, Graham, Sevcik: Quantitative System Performance, 1984, chapters 3 and 5);
- the wait below saturation is that of M/M/c, by Erlang's C formula (Kleinrock: Queueing Systems, volume 1, 1975, section 3.5), as
  for users who ask independently; beyond it the interactive response time law holds, users / answers a second - think time.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cdb import env
from cdb.serving import nginx_configuration, postgresql, templates
from cdb.serving.pools import REQUESTS_OF_A_THREAD, connections, pools

# Of all cores together, for a lookup of 200 rows at a random moment among 5.2 million IOVs: 2 cores gave 538 answers a second
# (docs/performance.md, "Serving as in production").
SERVICE_SECONDS = 2 / 538
# What a connection takes of a server's memory, in bytes, and more of them than this no server should have: the rule by which
# a large provider of PostgreSQL sets max_connections.
CONNECTION_BYTES, MOST_CONNECTIONS = 9_531_392, 5000
# Above it the wait grows faster than the load, and one machine's bad minute is everybody's.
COMFORTABLE = 0.8
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
        yield Hop("", "connections at most", *_numbers(r"^max_client_conn = (\d+)", ini), "max_client_conn")
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
    def arrivals_per_second(self) -> float:
        """How many the users would ask if each answer took no longer than its service time."""
        return self.users / (self.service_seconds + self.think_seconds) if self.users else 0.0

    @property
    def utilisation(self) -> float:
        """Arrivals as a share of what it answers; from 1 on there is a queue that grows until users wait."""
        return self.arrivals_per_second / self.most_per_second

    @property
    def answers_per_second(self) -> float:
        """What users get."""
        return min(self.arrivals_per_second, self.most_per_second)

    @property
    def response_seconds(self) -> float:
        """The mean time until an answer, queue and all."""
        servers = round(self.most_per_second * self.service_seconds)
        saturated = self.users / self.most_per_second - self.think_seconds
        if self.utilisation >= 1:
            return max(self.service_seconds, saturated)
        load = self.arrivals_per_second * self.service_seconds
        wait = erlang_c(servers, load) * self.service_seconds / (servers - load)
        # Users who wait ask nothing, so that no more than all of them can be in the queue.
        return self.service_seconds + min(wait, self.users * self.service_seconds / servers)

    @property
    def most_users(self) -> int:
        """How many users it takes comfortably at this think time."""
        return math.floor(COMFORTABLE * self.most_per_second * (self.service_seconds + self.think_seconds))

    @property
    def verdict(self) -> str:
        """Whether the users' rate fits, in a sentence."""
        if self.utilisation >= 1:
            limit = env.read()["CDB_QUEUE_TIMEOUT_SECONDS"]
            beyond = (
                f", more than CDB_QUEUE_TIMEOUT_SECONDS ({limit}): many get 504"
                if self.response_seconds > limit
                else ""
            )
            return f"does not fit: users wait {self.response_seconds:,.1f} s for an answer{beyond}"
        if self.utilisation > COMFORTABLE:
            return "barely fits: a little more, and the queue grows"
        return "fits"

    def settings_of_postgresql(self) -> dict[str, str]:
        """What deploy/postgresql.conf would say of connections and memory."""
        names = ("max_connections", "shared_buffers", "effective_cache_size", "work_mem", "maintenance_work_mem")
        return {name: self._postgresql()[name] for name in names}

    def _postgresql(self) -> dict[str, str]:
        return postgresql.options(self.memory_megabytes, self.cores)


def erlang_c(servers: int, load: float) -> float:
    """The share of arrivals that find all servers busy, `load` being the mean number of busy ones, below `servers`."""
    # By Erlang's B, whose recursion stays within what a float holds for any number of servers.
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return servers * blocked / (servers - load * (1 - blocked))


def _numbers(pattern: str, text: str) -> list[int]:
    return [int(number) for number in re.findall(pattern, text, re.MULTILINE)]


def _limit(zone: str, conf: str) -> tuple[int, str]:
    return _numbers(rf"limit_conn {zone} (\d+);", conf)[0], f"limit_conn {zone}"
