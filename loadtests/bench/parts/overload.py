"""The responses of the service under load from half of its capacity to ten times the capacity, and to a burst.

`make serve`, lookups at random moments in the largest tag. First the capacity is measured: the largest rate of responses
with a fixed number of connections. Then clients that pause for random times offer a multiple of it. They do not wait for
each other, so that a slow service does not reduce the offered rate, except for the clients in its queue. Responses and
their times are those in nginx's access log for the last part of each run, when the queue has reached its length. At the
end, very many jobs start at once, of which all must get their responses.
"""

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
# up to twice as long, and nginx closes a connection on which no request has begun after 15 s.
CLIENTS, LONGEST_PAUSE_SECONDS = 2000, 5
FACTORS = (0.5, 0.75, 1, 1.5, 2, 3, 5, 10)
# The defaults of CDB_OVERLOAD_WAIT_SECONDS, and of CDB_BURST_SECONDS with the time to empty the queue of that time.
WAIT_SECONDS, SETTLE_SECONDS = 1, 20
# The longest time that 99 % of the accepted lookups may take, in seconds.
MOST_P99_SECONDS = 3
# The log of the last second has clients that disconnected because the run was over.
END_SECONDS = 1
RATES = {"answered_per_s": "answered/s", "status_504_per_s": "504/s"}
COLUMNS = {"factor": "× capacity", "offered_per_s": "offered/s", **RATES, "other": "other", "dropped": "dropped"}
COLUMNS |= {"p50_ms": "p50 ms", "p99_ms": "p99 ms", "refused_p99_ms": "504: p99 ms", "share": "÷ most"}
COLUMNS |= {"client_cpu_percent": "client CPU %"}


def measure(harness: Harness, result: Result) -> None:
    """Measure the capacity, then every multiple of it."""
    tag, seconds = harness.sizes.largest, harness.sizes.seconds
    harness.seed(tag)
    with running(harness.settings, command="serve") as service:
        harness.warm_up(service, tag)
        url = service.lookup_url(tag)
        capacity = max(wrk.run(url, seconds=seconds, connections=64, seed=number).rate for number in (1, 2, 3))
        harness.say(f"overload: capacity {capacity:.0f} responses per second")
        for factor in FACTORS:
            harness.say(f"overload: {factor} × capacity")
            result.raw.append(_offer(harness, service, url, factor, capacity))
            _wait_until_idle(service)
        harness.say(f"overload: burst of {harness.sizes.jobs:,}")
        options = {"jobs": harness.sizes.jobs, "scenario": tag, "global_tag": tag, "major": 2**30, "minor": 0}
        with tempfile.TemporaryDirectory(dir=harness.data) as directory:
            found = burst.figures_of(burst.run(service.host, Path(directory), options), harness.sizes.jobs)
    _show(result, capacity)
    shown = {name: name for name in (*burst.SHOWN, "other")} | burst.MEASURED
    result.tables.append(Table.of(f"A burst of {harness.sizes.jobs:,} jobs", [found], shown))
    unanswered = harness.sizes.jobs - found[outcome.OK]
    result.targets.append(Target("jobs of the burst without a correct response", unanswered, 0, at_most=True))


def _offer(harness: Harness, service: Service, url: str, factor: float, capacity: float) -> dict[str, Any]:
    seconds, excess, path = harness.sizes.overload_seconds, factor - 1, harness.data / "serve" / "access.log"
    # Under overload, some clients wait in the queue, and those that pause offer the excess.
    rate = capacity * (factor if excess <= 0 else excess)
    pausing = min(CLIENTS, LONGEST_PAUSE_SECONDS * rate)
    clients = int(pausing if excess <= 0 else pausing + capacity * WAIT_SECONDS)
    whole = SETTLE_SECONDS + seconds + END_SECONDS
    offset, since = size_of(path), time.time() + SETTLE_SECONDS
    load = wrk.run(url, seconds=whole, connections=clients, pause_milliseconds=1000 * pausing / rate)
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


def _show(result: Result, capacity: float) -> None:
    most = max(row["answered_per_s"] for row in result.raw)
    for row in result.raw:
        row["share"] = ratio(row["answered_per_s"], most)
    result.tables.append(Table.of(f"Capacity: {capacity:.0f} responses/s", result.raw, COLUMNS))
    series = {
        name: sorted((row["offered_per_s"], row[key]) for row in result.raw)
        for name, key in zip(("answered (200)", "refused (504)"), RATES, strict=True)
    }
    axes = {"x": "offered requests/s", "y": "requests/s", "log_x": True}
    result.plots.append(plots.lines("Offered against answered", series, **axes))
    lost = sum(row["dropped"] + row["other"] for row in result.raw)
    share = result.raw[-1]["share"]
    times = [row["p99_ms"] for row in result.raw if row["factor"] > 1]
    longest = None if None in times else max(times) / 1000
    result.targets += [
        Target("p99 of accepted lookups above the capacity", longest, MOST_P99_SECONDS, at_most=True, unit="s"),
        Target("answered at ten times the capacity ÷ most answered", share, 0.8, at_most=False),
        Target("dropped or other than 200 and 504", lost, 0, at_most=True),
    ]
