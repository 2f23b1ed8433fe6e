"""The effect of nginx, its cache and PgBouncer on lookups, compared with gunicorn alone on the same database.

Both services run side by side and are measured alternately. *Random* is the load that a cache cannot reduce: lookups at
random moments in the largest tag. In a *storm* all jobs start at once, each over its own connection, and send the same
lookup: in a frozen tag, for which nginx may serve the cached response, or in an unlocked tag, for which nginx revalidates
it with the service each time. A storm lasts until the last job has its response; times count from its begin.
"""

import time
from itertools import product
from typing import Any

from loadtests import burst
from loadtests.bench.harness import COSTS, Harness
from loadtests.client import Client
from loadtests.harness import clone_with_statuses
from loadtests.recording.outcome import NO_RESPONSE
from loadtests.reporting.figures import ratios_to, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, running

TITLE = "Serving as in production"
WITH, WITHOUT = "make serve: nginx, gunicorn, PgBouncer", "make run: gunicorn alone"
FROZEN, UNLOCKED = "bench-frozen", "bench-unlocked"
TAGS = {"frozen": FROZEN, "unlocked": UNLOCKED}
MOMENT = {"major": 2**30, "minor": 0}


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
    keys = f"what round responses_per_s p50_ms p99_ms errors {COSTS}"
    result.tables.append(Table.of(title, result.raw, keys))
    value = ratios_to(spreads(result.raw, "what", "responses_per_s"), WITHOUT)[WITH]
    result.targets.append(Target("random lookups: make serve ÷ make run", value, 0.8, at_most=False))


def _storms(harness: Harness, result: Result, services: dict[str, Service]) -> None:
    rows, jobs = [], harness.sizes.jobs
    for number in range(1, harness.sizes.storm_rounds + 1):
        for tag, (name, service) in product((FROZEN, UNLOCKED), services.items()):
            harness.say(f"serving: storm of {jobs:,} on {tag}, {name}")
            options = {"jobs": jobs, "scenario": harness.sizes.largest_clone, "global_tag": tag, **MOMENT}
            row = {"phase": "storm", "what": name, "round": number, "tag": tag, "jobs": jobs}
            rows.append(row | burst.storm(service.host, harness.data, options))
            time.sleep(burst.PAUSE_SECONDS)
    result.raw += rows
    shown = {name: name for name in ("tag", "what", "round", *burst.SHOWN, "other")} | burst.MEASURED
    result.tables.append(Table.of(f"Storms of {jobs:,} jobs", rows, shown))
    dropped = sum(row[NO_RESPONSE] for row in rows if row["what"] == WITH)
    wrong = sum(row["other"] for row in rows)
    result.targets += [
        Target("storms: jobs without a response (make serve)", dropped, 0, at_most=True),
        Target("storms: responses that are neither correct nor 504", wrong, 0, at_most=True),
    ]
