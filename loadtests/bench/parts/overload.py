"""The responses of the service under load from half of its capacity to ten times the capacity.

`make serve`, lookups at random moments in the largest tag. First the capacity is measured: the largest rate of responses
with a fixed number of connections. Then clients that pause for random times offer a multiple of it. They do not wait for
each other, so that a slow service does not reduce the offered rate, except for the clients in its queue. Responses and
their times are those in nginx's access log for the last part of each run, when the queue has reached its length.
"""

import json
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from loadtests import usage, wrk
from loadtests.bench.rig import Rig
from loadtests.reporting import plots
from loadtests.reporting.figures import percentile, ratio
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, running

TITLE = "Overload"
# The number of requests that nginx queues; further requests get 504 (retry later).
QUEUE = 10_200
# Clients in addition to those that wait in the queue.
CLIENTS = 2000
FACTORS = (0.5, 0.75, 1, 1.5, 2, 3, 5, 10)
# The time until the queue has reached its length.
SETTLE_SECONDS = 8
# The log of the last second has clients that disconnected because the run was over.
END_SECONDS = 1
RATES = {"answered_per_s": "answered/s", "status_504_per_s": "504/s"}
COLUMNS = {"factor": "× capacity", "offered_per_s": "offered/s", **RATES, "other": "other", "dropped": "dropped"}
COLUMNS |= {"p50_ms": "p50 ms", "p99_ms": "p99 ms", "refused_p99_ms": "504: p99 ms", "share": "÷ most"}
COLUMNS |= {"worker_mib": "largest worker MiB", "client_cpu_percent": "client CPU %"}


def measure(rig: Rig, result: Result) -> None:
    """Measure the capacity, then every multiple of it."""
    tag, seconds = rig.sizes.largest, rig.sizes.floor_seconds
    rig.seed(tag)
    with running(rig.settings, command="serve") as service:
        rig.warm_up(service, tag)
        url = service.lookup_url(tag)
        capacity = max(wrk.run(url, seconds=seconds, connections=64, seed=number).rate for number in (1, 2, 3))
        rig.say(f"overload: capacity {capacity:.0f} responses per second")
        for factor in FACTORS:
            rig.say(f"overload: {factor} × capacity")
            result.raw.append(_offer(rig, service, url, factor, capacity))
            _wait_until_idle(service)
    _show(result, capacity)


def _offer(rig: Rig, service: Service, url: str, factor: float, capacity: float) -> dict[str, Any]:
    seconds, excess = rig.sizes.overload_seconds, factor - 1
    # Under overload, QUEUE clients wait in the queue, and the others offer the excess.
    clients = CLIENTS if excess <= 0 else QUEUE + CLIENTS
    pause = 1000 * CLIENTS / (capacity * (factor if excess <= 0 else excess))
    whole = SETTLE_SECONDS + seconds + END_SECONDS
    with usage.peak_of_workers(service.application(), recursive=True) as memory:
        since = time.time() + SETTLE_SECONDS
        load = wrk.run(url, seconds=whole, connections=clients, pause_milliseconds=pause)
    time.sleep(2)
    statuses, times = _logged(rig.data / "serve" / "access.log", since, since + seconds)
    other = sum(count for status, count in statuses.items() if status not in (200, 504))
    good, refused = times[True], times[False]
    return {
        "factor": factor,
        "offered_per_s": statuses.total() / seconds,
        "answered_per_s": statuses[200] / seconds,
        "status_504_per_s": statuses[504] / seconds,
        "other": other,
        "dropped": load.broken,
        "p50_ms": percentile(good, 50) if good else None,
        "p99_ms": percentile(good, 99) if good else None,
        "refused_p99_ms": percentile(refused, 99) if refused else None,
        "worker_mib": memory["worker_peak_mib"],
        "client_cpu_percent": 100 * load.client_share,
    }


def _logged(log: Path, since: float, until: float) -> tuple[Counter[int], dict[bool, list[float]]]:
    """The lookups in nginx's access log whose responses were sent in a time span, given in seconds since the epoch.

    They are counts by status, and times in milliseconds by whether the status is 200.
    """
    statuses, times = Counter[int](), {True: [], False: []}
    with log.open(errors="replace") as lines:
        for found in map(json.loads, lines):
            if "payloadiovs" in found["uri"] and since <= datetime.fromisoformat(found["time"]).timestamp() < until:
                statuses[found["status"]] += 1
                times[found["status"] == 200].append(1000 * float(found["request_time"]))
    return statuses, times


def _wait_until_idle(service: Service) -> None:
    """Wait until the service is idle, so that no request of the last run is left in its queue; at most a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        before = usage.family_cpu(service.application())
        time.sleep(1)
        if usage.family_cpu(service.application()) - before < 0.2:
            return


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
    result.targets += [
        Target("answered at ten times the capacity ÷ most answered", share, 0.8, at_most=False),
        Target("dropped or other than 200 and 504", lost, 0, at_most=True),
    ]
