"""The effect of nginx, its cache and PgBouncer on lookups, compared with gunicorn alone on the same database.

Both services run side by side and are measured alternately. *Random* is the load that a cache cannot reduce: lookups at
random moments in the largest tag. In a *storm* all jobs start at once, each over its own connection, and send the same
lookup: in a frozen tag, for which nginx may serve the cached response, or in an unlocked tag, for which nginx revalidates
it with the service each time. A storm lasts until the last job has its response; times count from its begin.
"""

import time
from typing import Any

from loadtests import storm
from loadtests.bench.harness import COSTS, Harness, columns
from loadtests.client import Client
from loadtests.harness import clone_with_statuses
from loadtests.reporting.figures import ratios_to, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, running

TITLE = "Serving as in production"
WITH, WITHOUT = "make serve: nginx, gunicorn, PgBouncer", "make run: gunicorn alone"
FROZEN, UNLOCKED = "bench-frozen", "bench-unlocked"
TAGS = {"frozen": FROZEN, "unlocked": UNLOCKED}
MOMENT = "&majorIOV=1073741824&minorIOV=0"
STORM_TIMEOUT_SECONDS = 120
PAUSE_SECONDS = 2


def measure(harness: Harness, result: Result) -> None:
    """Measure random lookups, then storms."""
    harness.seed(harness.sizes.largest)
    with running(harness.settings) as alone, running(harness.settings, command="serve") as production:
        services = {WITH: production, WITHOUT: alone}
        clone_with_statuses(Client(alone.host), harness.sizes.largest_clone, TAGS)
        _random(harness, result, services)
        _storms(harness, result, services)


def serving_load(harness: Harness, service: Service, tag: str, seed: int) -> dict[str, Any]:
    """Measure lookups at random moments for the time and with the connections of this part."""
    seconds, connections = harness.sizes.floor_seconds, harness.sizes.serving_connections
    return harness.load(service, service.lookup_url(tag), connections=connections, seconds=seconds, seed=seed)


def _random(harness: Harness, result: Result, services: dict[str, Service]) -> None:
    tag = harness.sizes.largest
    for name, service in services.items():
        harness.say(f"serving: warming up {name}")
        harness.warm_up(service, tag)
    for number, name in harness.rounds("serving", list(services)):
        row = serving_load(harness, services[name], tag, number)
        result.raw.append({"phase": "random", "what": name, "round": number, **row})
    title = f"{tag}, random moments, {harness.sizes.serving_connections} connections"
    shown = columns(f"what round responses_per_s p50_ms p99_ms errors {COSTS}")
    result.tables.append(Table.of(title, result.raw, shown))
    value = ratios_to(spreads(result.raw, "what", "responses_per_s"), WITHOUT)[WITH]
    result.targets.append(Target("random lookups: make serve ÷ make run", value, 0.8, at_most=False))


def _storms(harness: Harness, result: Result, services: dict[str, Service]) -> None:
    rows: list[dict[str, Any]] = []
    for number in range(1, harness.sizes.storm_rounds + 1):
        for tag in (FROZEN, UNLOCKED):
            for name, service in services.items():
                harness.say(f"serving: storm of {harness.sizes.jobs:,} on {tag}, {name}")
                found = storm.run(
                    service.lookup_url(tag) + MOMENT, jobs=harness.sizes.jobs, timeout=STORM_TIMEOUT_SECONDS
                )
                good, dropped = found.statuses[200], found.statuses[0]
                row = {
                    "phase": "storm",
                    "what": name,
                    "round": number,
                    "tag": tag,
                    "jobs": harness.sizes.jobs,
                    "good": good,
                }
                row |= {"refused": harness.sizes.jobs - good - dropped, "dropped": dropped}
                row |= {"different_bodies": len(found.bodies), "seconds": found.seconds}
                row |= {"responses_per_s": good / found.seconds, "p50_ms": found.time_of(50)}
                rows.append(row | {"p99_ms": found.time_of(99), "client_cpu_seconds": found.cpu_seconds})
                # The kernel's queues must be empty before the next storm.
                time.sleep(PAUSE_SECONDS)
    result.raw += rows
    keys = "tag what round good refused dropped responses_per_s p50_ms p99_ms seconds client_cpu_seconds"
    heads = {"good": "responses", "refused": "504", "seconds": "last after s", "client_cpu_seconds": "client CPU s"}
    result.tables.append(Table.of(f"Storms of {harness.sizes.jobs:,} jobs", rows, columns(keys, **heads)))
    dropped = sum(row["dropped"] for row in rows if row["what"] == WITH)
    result.targets.append(Target("storms: jobs without a response (make serve)", dropped, 0, at_most=True))
