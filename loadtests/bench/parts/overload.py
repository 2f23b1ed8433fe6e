"""The responses of the service under load from half of its capacity to ten times the capacity."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from loadtests import usage
from loadtests.bench.rig import Rig, table
from loadtests.reporting import plots
from loadtests.reporting.figures import percentile, ratio
from loadtests.reporting.result import Result, Target
from loadtests.service import Service, running
from loadtests.wrk import run as run_wrk

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
INTRO = (
    "`make serve`, lookups at random moments in the largest tag. First the capacity is measured: the largest rate of responses "
    "with a fixed number of connections. Then clients that pause for random times offer a multiple of it. They do not wait for "
    "each other, so that a slow service does not reduce the offered rate, except for the clients in its queue. Responses and "
    "their times are those in nginx's access log for the last part of each run, when the queue has reached its length."
)
COLUMNS = {
    "factor": "× capacity", "offered_per_s": "offered/s", "answered_per_s": "answered/s", "status_504_per_s": "504/s",
    "other": "other", "dropped": "dropped", "p50_ms": "p50 ms", "p99_ms": "p99 ms", "refused_p99_ms": "504: p99 ms",
    "share": "÷ most", "worker_mib": "largest worker MiB", "client_cpu_percent": "client CPU %",
}  # fmt: skip


def measure(rig: Rig) -> Result:
    """Measure the capacity, then every multiple of it."""
    result = Result("overload", TITLE, INTRO)
    tag = rig.sizes.largest
    rig.seed(tag)
    with running(rig.settings, command="serve") as service:
        rig.warm_up(service, tag)
        url = service.lookup_url(tag)
        capacity = max(
            run_wrk(url, seconds=rig.sizes.floor_seconds, connections=64, seed=number).rate for number in (1, 2, 3)
        )
        rig.say(f"overload: capacity {capacity:.0f} responses per second")
        for factor in FACTORS:
            rig.say(f"overload: {factor} × capacity")
            result.raw.append(_offer(rig, service, url, factor, capacity))
            _wait_until_idle(service)
    _show(result, capacity)
    return result


def _offer(rig: Rig, service: Service, url: str, factor: float, capacity: float) -> dict[str, Any]:
    seconds = rig.sizes.overload_seconds
    excess = factor - 1
    # Under overload, QUEUE clients wait in the queue, and the others offer the excess.
    clients = CLIENTS if excess <= 0 else QUEUE + CLIENTS
    pause = CLIENTS / (capacity * (factor if excess <= 0 else excess))
    with usage.peak_of(lambda: usage.largest_worker(service.application(), recursive=True)) as peak:
        begin = time.time()
        load = run_wrk(
            url,
            seconds=SETTLE_SECONDS + seconds + END_SECONDS,
            connections=clients,
            pause_milliseconds=1000 * pause,
        )
    time.sleep(2)
    good, refused, statuses = [], [], Counter()
    for line in _logged(rig.data / "serve" / "access.log", begin + SETTLE_SECONDS, begin + SETTLE_SECONDS + seconds):
        statuses[line["status"]] += 1
        (good if line["status"] == 200 else refused).append(1000 * float(line["request_time"]))
    other = sum(count for status, count in statuses.items() if status not in (200, 504))
    return {
        "factor": factor, "offered_per_s": sum(statuses.values()) / seconds, "answered_per_s": statuses[200] / seconds,
        "status_504_per_s": statuses[504] / seconds, "other": other, "dropped": load.broken,
        "p50_ms": percentile(good, 50) if good else None, "p99_ms": percentile(good, 99) if good else None,
        "refused_p99_ms": percentile(refused, 99) if refused else None, "worker_mib": peak.most / 2**20,
        "client_cpu_percent": 100 * load.client_share,
    }  # fmt: skip


def _logged(log: Path, since: float, until: float) -> Iterator[dict[str, Any]]:
    """The lookups in nginx's access log whose responses were sent in a time span, given in seconds since the epoch."""
    with log.open(errors="replace") as lines:
        for line in lines:
            found = json.loads(line)
            if "payloadiovs" in found["uri"] and since <= datetime.fromisoformat(found["time"]).timestamp() < until:
                yield found


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
    title = f"Capacity: {capacity:.0f} responses/s"
    result.tables.append(table(title, result.raw, " ".join(COLUMNS), **COLUMNS))
    offered = [row["offered_per_s"] for row in result.raw]
    series = {
        name: sorted(zip(offered, (row[key] for row in result.raw), strict=True))
        for name, key in (("answered (200)", "answered_per_s"), ("refused (504)", "status_504_per_s"))
    }
    title = "Offered against answered"
    result.plots.append(plots.lines(title, series, x="offered requests/s", y="requests/s", log_x=True))
    last = result.raw[-1]
    result.targets += [
        Target("answered at ten times the capacity ÷ most answered", last["share"], 0.8, at_most=False),
        Target("dropped or other than 200 and 504", sum(row["dropped"] + row["other"] for row in result.raw), 0, True),
    ]
