"""The signals of PostgreSQL, of the service and of the whole machine, as columns of a table."""

import contextlib
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import psutil
import psycopg2

from loadtests import metrics, usage
from loadtests.database import text_of
from loadtests.signals.rates import Rates

# These columns exist in every row, so that plots show zeros.
ALWAYS = ("connections.active", "connections.idle", "connections.idle_in_transaction", "waits.none")
CONNECT_SECONDS = 2
STATEMENT_MILLISECONDS = 900
METRICS_SECONDS = 4
# Column, metric, and the label whose value is appended to the name of the column (None: no label).
GAUGES = (("in_progress", "cdb_requests_in_progress", None),)
COUNTERS = (
    ("responses", "cdb_requests_total", "status"),
    ("errors", "cdb_errors_total", "code"),
    ("lookups.reached", "cdb_lookups_received_total", None),
    ("lookups.started", "cdb_lookups_started_total", None),
    ("lookups.finished", "cdb_lookups_finished_total", None),
)


def sessions(url: str) -> dict[str, float]:
    """The sessions of PostgreSQL by state, `connections.<state>`, and the active ones by wait event, `waits.<type>:<event>`.

    `waits.none` are those that wait for nothing. Each call opens a connection of its own, which is not counted. Raises
    `psycopg2.Error` if PostgreSQL does not respond.
    """
    limit = f"-c statement_timeout={STATEMENT_MILLISECONDS}"
    name: dict[str, Any] = {"application_name": "cdb-load", "options": limit, "connect_timeout": CONNECT_SECONDS}
    with contextlib.closing(psycopg2.connect(url, **name)) as connection, connection.cursor() as cursor:
        cursor.execute(text_of("signal_connections"))
        rows = cursor.fetchall()
    columns: dict[str, float] = defaultdict(float, dict.fromkeys(ALWAYS, 0.0))
    for state, wait, count in rows:
        columns[f"connections.{state.replace(' ', '_')}"] += count
        if wait is not None:
            columns[f"waits.{wait}"] += count
    return columns


class Counts:
    """Reads columns from /metrics of the service at `url`, which may be on another machine."""

    def __init__(self, url: str) -> None:
        self._url, self._rates = url, Rates()

    def read(self) -> dict[str, float]:
        """The columns of `GAUGES`, and those of `COUNTERS` as rates per second since the last successful call.

        Requests to the routes `metrics.WATCHING` do not count. `queue_ms` is the mean time in milliseconds that
        requests waited for a thread since then. Columns whose metric the service does not have are missing, the first call
        has no rates, and the result is empty if /metrics cannot be read.
        """
        samples = metrics.read(self._url, METRICS_SECONDS)
        if not samples:
            return {}
        rates = self._rates.of(samples)
        load = {name: rate for name, rate in rates.items() if not any(one in name for one in metrics.WATCHING)}
        waited, counted = rates.get("cdb_queue_seconds_sum"), rates.get("cdb_queue_seconds_count")
        queue = {"queue_ms": 1000 * waited / counted} if waited is not None and counted else {}
        return _named(samples, GAUGES) | _named(load, COUNTERS) | queue


def _named(samples: Mapping[str, float], wanted: tuple[tuple[str, str, str | None], ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for column, metric, label in wanted:
        if label is not None:
            values = metrics.by_label(samples, metric, label)
            found |= {f"{column}.{key}": value for key, value in values.items()}
        elif metric in samples:
            found[column] = samples[metric]
    return found


class Machine:
    """Columns about the whole machine."""

    def __init__(self) -> None:
        self._rates = Rates()

    def read(self) -> dict[str, float]:
        """The used memory, `memory.machine` in bytes, and rates since the last call (none at the first call).

        `cpu.machine` is in cores. In bytes per second: `disk.read`, `disk.write`, `network.sent`, `network.received`.
        `disk.busy` is the share of time in which the busiest disk was active.
        """
        totals, memory = {"cpu.machine": usage.whole_cpu()}, psutil.virtual_memory()
        if disks := psutil.disk_io_counters():
            totals |= {"disk.read": disks.read_bytes, "disk.write": disks.write_bytes}
        if network := psutil.net_io_counters():
            totals |= {"network.sent": network.bytes_sent, "network.received": network.bytes_recv}
        for name, disk in (psutil.disk_io_counters(perdisk=True) or {}).items():
            totals[f"busy.{name}"] = getattr(disk, "busy_time", 0) / 1000
        rates = self._rates.of(totals)
        busy = [rates.pop(name) for name in list(rates) if name.startswith("busy.")]
        return rates | ({"disk.busy": max(busy)} if busy else {}) | {"memory.machine": memory.total - memory.available}
