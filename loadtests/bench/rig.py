"""What every part works with: the sizes, and measured load."""

import os
import time
from dataclasses import dataclass, field
from typing import Any

from loadtests import usage, wrk
from loadtests.bench.sizes import FULL, Sizes
from loadtests.database import pgbench
from loadtests.rig import Rig as PlainRig
from loadtests.service import Service

# A run that is not so much faster than the one before it says that nothing is left to bring into memory; this many runs at most.
WARM_GAIN, WARM_RUNS = 1.1, 10
SETTLE_SECONDS = 0.2


@dataclass
class Rig(PlainRig):
    """One run of the bench."""

    sizes: Sizes = FULL
    most_client_share: float = field(default=0.0, init=False)

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
