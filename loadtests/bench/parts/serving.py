"""The effect of nginx, its cache and PgBouncer on lookups, compared with gunicorn alone on the same database."""

import json
import time
from typing import Any

from loadtests import storm
from loadtests.bench.rig import Rig
from loadtests.client import Client
from loadtests.reporting.figures import Spread, ratio
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, running

TITLE = "Serving as in production"
WITH, WITHOUT = "make serve: nginx, gunicorn, PgBouncer", "make run: gunicorn alone"
FROZEN, UNLOCKED = "bench-frozen", "bench-unlocked"
MOMENT = "&majorIOV=1073741824&minorIOV=0"
STORM_TIMEOUT_SECONDS = 120
PAUSE_SECONDS = 2
INTRO = (
    "Both services run side by side and are measured alternately. *Random* is the load that a cache cannot reduce: lookups at "
    "random moments in the largest tag. In a *storm* all jobs start at once, each over its own connection, and send the same "
    "lookup: in a frozen tag, for which nginx may serve the cached response, or in an unlocked tag, for which nginx revalidates "
    "it with the service each time. A storm lasts until the last job has its response; times count from its begin."
)


def measure(rig: Rig) -> Result:
    """Measure random lookups, then storms."""
    result = Result("serving", TITLE, INTRO)
    rig.seed(rig.sizes.largest)
    with running(rig.settings) as alone, running(rig.settings, command="serve") as production:
        services = {WITH: production, WITHOUT: alone}
        make_tags(alone, rig.sizes.largest_clone)
        _random(rig, result, services)
        _storms(rig, result, services)
    return result


def make_tags(service: Service, source: str) -> None:
    """Create a frozen and an unlocked clone of a tag, unless they exist from an earlier run."""
    with Client(service.port) as client:
        there = {tag["name"]: tag["status"] for tag in json.loads(client.call("GET", "globalTags").body)}
        for name in (FROZEN, UNLOCKED):
            if name not in there:
                client.write("POST", f"cloneGlobalTag/{source}/{name}")
        if there.get(FROZEN) != "frozen":
            client.write("PUT", f"gt_change_status/{FROZEN}/frozen")


def _random(rig: Rig, result: Result, services: dict[str, Service]) -> None:
    tag = rig.sizes.largest
    rates: dict[str, list[float]] = {name: [] for name in services}
    for name, service in services.items():
        rig.say(f"serving: warming up {name}")
        rig.warm_up(service, tag)
    for number in range(1, rig.sizes.rounds + 1):
        rig.say(f"serving: random, round {number} of {rig.sizes.rounds}")
        for name in list(services)[:: 1 if number % 2 else -1]:
            row = rig.load(
                services[name],
                services[name].lookup_url(tag),
                connections=rig.sizes.serving_connections,
                seconds=rig.sizes.floor_seconds,
                seed=number,
            )
            rates[name].append(row["answers_per_s"])
            result.raw.append({"phase": "random", "what": name, "round": number, **row})
    keys = ("what", "round", "answers_per_s", "p50_ms", "p99_ms", "errors", "gunicorn_cpu_ms", "postgres_cpu_ms")
    keys += ("client_cpu_percent", "others_cpu_percent")
    columns = ("what", "round", "answers/s", "p50 ms", "p99 ms", "errors", "gunicorn CPU ms/answer")
    columns += ("PostgreSQL CPU ms/answer", "client CPU %", "others CPU %")
    title = f"{tag}, random moments, {rig.sizes.serving_connections} connections"
    result.tables.append(Table(title, columns, [tuple(row[key] for key in keys) for row in result.raw]))
    medians = {name: Spread.of(values).median for name, values in rates.items()}
    result.targets.append(
        Target("random lookups: make serve ÷ make run", ratio(medians[WITH], medians[WITHOUT]), 0.8, at_most=False)
    )


def _storms(rig: Rig, result: Result, services: dict[str, Service]) -> None:
    rows: list[tuple[Any, ...]] = []
    for number in range(1, rig.sizes.storm_rounds + 1):
        for tag in (FROZEN, UNLOCKED):
            for name, service in services.items():
                rig.say(f"serving: storm of {rig.sizes.jobs:,} on {tag}, {name}")
                url = service.lookup_url(tag) + MOMENT
                found = storm.run(url, jobs=rig.sizes.jobs, timeout=STORM_TIMEOUT_SECONDS)
                row = {
                    "phase": "storm", "what": name, "round": number, "tag": tag, "jobs": rig.sizes.jobs, "good": found.good,
                    "refused": sum(found.statuses.values()) - found.good, "dropped": found.dropped,
                    "different_bodies": len(found.bodies), "seconds": found.seconds,
                    "answers_per_s": found.good / found.seconds, "p50_ms": found.time_of(50), "p99_ms": found.time_of(99),
                    "client_cpu_seconds": found.cpu_seconds,
                }  # fmt: skip
                result.raw.append(row)
                rows.append(tuple(row[key] for key in STORM_KEYS))
                # The kernel's queues must be empty before the next storm.
                time.sleep(PAUSE_SECONDS)
    result.tables.append(Table(f"Storms of {rig.sizes.jobs:,} jobs", STORM_COLUMNS, rows))
    dropped = sum(row["dropped"] for row in result.raw if row["phase"] == "storm" and row["what"] == WITH)
    result.targets.append(Target("storms: jobs without a response (make serve)", dropped, 0, at_most=True))


STORM_KEYS = (
    "tag", "what", "round", "good", "refused", "dropped", "answers_per_s", "p50_ms", "p99_ms", "seconds", "client_cpu_seconds",
)  # fmt: skip
STORM_COLUMNS = (
    "tag", "what", "round", "answers", "504", "dropped", "answers/s", "p50 ms", "p99 ms", "last after s", "client CPU s",
)  # fmt: skip
