"""The responses of the service under load from half of its capacity to ten times the capacity, and to a burst.

`make serve`, lookups at random moments in the largest tag. The capacity is the rate of responses with a fixed number of
connections without pauses. Clients that pause for random times offer a multiple of it. They do not wait for each other, so
that a slow service does not reduce the offered rate, except for the clients in its queue. Responses and their times are those
in nginx's access log for the last part of each run, when the queue has reached its length. The capacity is measured before
and after each run, because a shared machine may become slower, and the rate of responses is compared with the mean of both.
At the end, very many jobs start at once, of which all must get their responses.
"""

import itertools
import tempfile
import time
from pathlib import Path
from typing import Any

from loadtests import burst, usage, wrk
from loadtests.access_log import FLUSH_SECONDS, AccessLog, size_of
from loadtests.bench.harness import Harness
from loadtests.recording import outcome
from loadtests.reporting import plots
from loadtests.reporting.figures import ratio
from loadtests.reporting.result import Result, Table, Target
from loadtests.reporting.summaries import percentiles_of
from loadtests.service import Service, becomes_true, running

TITLE = "Overload"
# Clients in addition to those that wait in the queue, and the longest mean pause of a client before a request. Pauses are
# up to twice as long, and nginx closes a connection on which no request has begun after 15 s. wrk examines the pauses of all
# clients at each event, so that more clients would take CPU time from the service.
CLIENTS, LONGEST_PAUSE_SECONDS = 600, 5
# The number of connections with which the capacity is measured.
CONNECTIONS = 64
FACTORS = (0.5, 0.75, 1, 1.5, 2, 3, 5, 10)
MODERATE_FACTOR = 3
# How long a request may wait in an overload, and how long it takes until the service takes one for granted, with the time to
# empty the queue of CDB_QUEUE_TIMEOUT_SECONDS.
WAIT_SECONDS, SETTLE_SECONDS = 1, 20
# The longest time that 99 % of the accepted lookups may take, in seconds.
MOST_P99_SECONDS = 3
# The log of the last second has clients that disconnected because the run was over.
END_SECONDS = 1
RATES = {"answered_per_s": "answered/s", "status_504_per_s": "504/s"}
COLUMNS = {"factor": "× capacity", "offered_per_s": "offered/s", **RATES, "other": "other", "dropped": "dropped"}
COLUMNS |= {
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "refused_p99_ms": "504: p99 ms",
    "capacity": "capacity/s",
    "share": "÷ capacity",
}
COLUMNS |= {"client_cpu_percent": "client CPU %"}


def measure(harness: Harness, result: Result) -> None:
    """Measure the capacity, then every multiple of it."""
    tag = harness.sizes.largest
    harness.seed(tag)
    with running(harness.settings, command="serve") as service:
        harness.warm_up(service, tag)
        url = service.lookup_url(tag)
        seeds = itertools.count(1)
        capacity = _capacity(harness, url, next(seeds))
        harness.say(f"overload: capacity {capacity:.0f} responses per second")
        for factor in FACTORS:
            harness.say(f"overload: {factor} × capacity")
            row = _offer(harness, service, url, factor, capacity, next(seeds))
            _wait_until_idle(service)
            before, capacity = capacity, _capacity(harness, url, next(seeds))
            row["capacity"] = (before + capacity) / 2
            row["share"] = ratio(row["answered_per_s"], row["capacity"])
            result.raw.append(row)
        harness.say(f"overload: burst of {harness.sizes.jobs:,}")
        options = {"jobs": harness.sizes.jobs, "scenario": tag, "global_tag": tag, "major": 2**30, "minor": 0}
        with tempfile.TemporaryDirectory(dir=harness.data) as directory:
            found = burst.figures_of(burst.run(service.host, Path(directory), options), harness.sizes.jobs)
    _show(result)
    shown = {name: name for name in (*burst.SHOWN, "other")} | burst.MEASURED
    result.tables.append(Table.of(f"A burst of {harness.sizes.jobs:,} jobs", [found], shown))
    unanswered = harness.sizes.jobs - found[outcome.OK]
    result.targets.append(Target("jobs of the burst without a correct response", unanswered, 0, at_most=True))


def _capacity(harness: Harness, url: str, seed: int) -> float:
    """The number of responses a second with `CONNECTIONS` connections. nginx has no response of another seed in its cache."""
    return wrk.run(url, seconds=harness.sizes.seconds, connections=CONNECTIONS, seed=seed).rate


def _offer(harness: Harness, service: Service, url: str, factor: float, capacity: float, seed: int) -> dict[str, Any]:
    seconds, path = harness.sizes.overload_seconds, harness.data / "serve" / "access.log"
    rate = factor * capacity
    pausing = min(CLIENTS, LONGEST_PAUSE_SECONDS * rate)
    # Under overload, further clients wait in the queue.
    clients = int(pausing + (capacity * WAIT_SECONDS if factor > 1 else 0))
    whole = SETTLE_SECONDS + seconds + END_SECONDS
    pause = 1000 * pausing / rate
    offset, since = size_of(path), time.time() + SETTLE_SECONDS
    load = wrk.run(url, seconds=whole, connections=clients, seed=seed, pause_milliseconds=pause)
    time.sleep(FLUSH_SECONDS)
    log = AccessLog.read(path, offset)
    sent = (log.ends >= since) & (log.ends < since + seconds)
    good, refused = (sent & (log.statuses == status) for status in (200, 504))
    answered, rejected = (percentiles_of(1000 * log.seconds[chosen]) for chosen in (good, sent & ~good))
    return {
        "factor": factor,
        "offered_per_s": int(sent.sum()) / seconds,
        "answered_per_s": int(good.sum()) / seconds,
        "status_504_per_s": int(refused.sum()) / seconds,
        "other": int((sent & ~good & ~refused).sum()),
        "dropped": load.broken,
        "p50_ms": answered["p50_ms"],
        "p99_ms": answered["p99_ms"],
        "refused_p99_ms": rejected["p99_ms"],
        "client_cpu_percent": 100 * load.client_share,
    }


def _wait_until_idle(service: Service) -> None:
    """Wait until the service is idle, so that no request of the last run is left in its queue; at most a minute."""

    def is_idle() -> bool:
        before = usage.family_cpu(service.root())
        time.sleep(1)
        return usage.family_cpu(service.root()) - before < 0.2

    becomes_true(is_idle, 60)


def _show(result: Result) -> None:
    result.tables.append(Table.of("From half of the capacity to ten times the capacity", result.raw, COLUMNS))
    series = {
        name: sorted((row["offered_per_s"], row[key]) for row in result.raw)
        for name, key in zip(("answered (200)", "refused (504)"), RATES, strict=True)
    }
    axes = {"x": "offered requests/s", "y": "requests/s", "log_x": True}
    result.plots.append(plots.lines("Offered against answered", series, **axes))
    lost = sum(row["dropped"] + row["other"] for row in result.raw)
    beyond = [row for row in result.raw if row["factor"] > 1]
    least = min(row["share"] for row in beyond if row["factor"] <= MODERATE_FACTOR)
    times = [row["p99_ms"] for row in beyond]
    longest = None if None in times else max(times) / 1000
    result.targets += [
        Target("p99 of accepted lookups above the capacity", longest, MOST_P99_SECONDS, at_most=True, unit="s"),
        Target(f"answered ÷ capacity, at up to {MODERATE_FACTOR} times the capacity", least, 0.95, at_most=False),
        Target("answered ÷ capacity, at ten times the capacity", beyond[-1]["share"], 0.8, at_most=False),
        Target("dropped or other than 200 and 504", lost, 0, at_most=True),
    ]
