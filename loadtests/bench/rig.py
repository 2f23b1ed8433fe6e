"""What every part works with: the data directory, the embedded server, the sizes, progress, and measured load."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdb.embedded_postgres import EmbeddedPostgres
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests import usage
from loadtests.bench import wrk
from loadtests.bench.sizes import Sizes
from loadtests.database import Database, pgbench
from loadtests.service import Service, Settings, manage

GOOD_TAG = 'SELECT payload_iov_count FROM "GlobalTag" WHERE name = %s AND payload_lists_count = %s'
# A run that is not so much faster than the one before it says that nothing is left to bring into memory; this many runs at most.
WARM_GAIN, WARM_RUNS = 1.1, 10
SETTLE_SECONDS = 0.2
TABLES = "SELECT to_regclass('\"GlobalTag\"') IS NOT NULL"


@dataclass
class Rig:
    """One run of the bench."""

    data: Path
    sizes: Sizes
    _server: EmbeddedPostgres = field(init=False)
    _ready: set[str] = field(default_factory=set)
    most_client_share: float = 0.0

    def __post_init__(self) -> None:
        self._server = EmbeddedPostgres(self.data / "postgres")

    @contextlib.contextmanager
    def running_database(self) -> Iterator[None]:
        """Keep the embedded server up from one service to the next."""
        self._server.acquire()
        try:
            yield
        finally:
            self._server.release()

    @property
    def settings(self) -> Settings:
        """Of a service on the main database."""
        return Settings(self.data, {})

    @property
    def database(self) -> Database:
        """The main one, with the scenarios."""
        return Database(self._server.url)

    def say(self, line: str) -> None:
        """One line of progress."""
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
        sys.stderr.flush()

    def seed(self, *scenarios: str) -> None:
        """Make sure that the scenarios are there; a tag with the right counts is taken as it is, because the same rows
        would come again."""
        for name in scenarios:
            if name in self._ready:
                continue
            scenario = SCENARIOS[name]
            if not self.database.value(TABLES):
                manage(self.settings, "migrate", "--verbosity", "0")
            if self.database.value(GOOD_TAG, (name, scenario.payload_types)) != scenario.iovs:
                self.say(f"seeding {name}: {scenario.iovs:,} IOVs")
                manage(self.settings, "seed_scenario", name, "--layout", "random", "--reset", "--yes")
            self._ready.add(name)

    def load(self, service: Service, url: str, *, connections: int, seconds: int, **options: Any) -> dict[str, Any]:
        """A run of wrk with what it cost: a row for tables and CSV files. Rates in answers a second, CPU in milliseconds
        an answer, shares of all cores in percent."""
        with usage.measured(service.application(), usage.postmaster(self.data / "postgres" / "data")) as used:
            load = wrk.run(url, seconds=seconds, connections=connections, **options)
        answers = max(1, load.requests)
        self.most_client_share = max(self.most_client_share, load.client_share)
        return {
            "connections": connections,
            "seconds": round(load.seconds, 3),
            "answers": load.requests,
            "answers_per_s": load.rate,
            "p50_ms": load.p50 if load.requests else None,
            "p95_ms": load.p95 if load.requests else None,
            "p99_ms": load.p99 if load.requests else None,
            "max_ms": load.max if load.requests else None,
            "bytes_per_answer": load.bytes // answers,
            "errors": load.errors,
            "refused": load.refused,
            "timeouts": load.timeouts,
            "broken": load.broken,
            "gunicorn_cpu_ms": used.gunicorn * 1000 / answers,
            **_costs(used, answers, load.cpu_seconds, load.wall_seconds),
        }

    def transactions(self, script: str, *, clients: int, seconds: int, mode: str, seed: int) -> dict[str, Any]:
        """The same of a run of pgbench on the main database."""
        begin = time.monotonic()
        with usage.measured(None, usage.postmaster(self.data / "postgres" / "data")) as used:
            done = pgbench(self.database, script, clients=clients, seconds=seconds, mode=mode, seed=seed)
            wall = time.monotonic() - begin
            # Until the server has noticed that its processes for pgbench have ended, their CPU time is nobody's.
            time.sleep(SETTLE_SECONDS)
        return {
            "answers": done.count,
            "answers_per_s": done.rate,
            "latency_ms": done.latency,
            "errors": done.failed,
            **_costs(used, max(1, done.count), done.cpu_seconds, wall),
        }

    def warm_up(self, service: Service, *tags: str) -> None:
        """Let every thread open its connection and plan its lookup, and bring what lookups read into memory."""
        for tag in tags:
            self.settle(service.lookup_url(tag), connections=service.workers * 4)

    def settle(self, url: str, *, connections: int) -> None:
        """Put load on `url`, second by second, until that makes it no faster, so that what is timed next is not a cold start."""
        fastest = 0.0
        for number in range(WARM_RUNS):
            rate = wrk.run(url, seconds=1, connections=connections, seed=90 + number).rate
            if rate < fastest * WARM_GAIN:
                break
            fastest = rate


def _costs(used: usage.Usage, answers: int, client_seconds: float, wall: float) -> dict[str, float]:
    capacity = wall * len(os.sched_getaffinity(0))
    others = max(0.0, used.whole - used.gunicorn - used.postgres - client_seconds)
    return {
        "postgres_cpu_ms": used.postgres * 1000 / answers,
        "client_cpu_percent": client_seconds * 100 / capacity,
        "others_cpu_percent": others * 100 / capacity,
    }
