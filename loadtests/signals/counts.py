"""The metrics of the service as columns of a table: the values of gauges and the rates of counters."""

import time
from collections.abc import Mapping

from loadtests import metrics

TIMEOUT_SECONDS = 4
# Column, metric, and the label whose value is appended to the name of the column (None: no label).
GAUGES = (
    ("in_progress", "cdb_requests_in_progress", "pool"),
    ("thread_limit", "cdb_threads", "pool"),
    ("pool_size", "cdb_pgbouncer_pool_size", "database"),
    ("connection_limit", "cdb_database_max_connections", None),
    ("pgbouncer.clients", "cdb_pgbouncer_clients", "state"),
    ("pgbouncer.servers", "cdb_pgbouncer_servers", "state"),
)
COUNTERS = (
    ("answers", "cdb_requests_total", "status"),
    ("errors", "cdb_errors_total", "code"),
    ("refusals", "cdb_queue_refusals_total", "pool"),
    ("lookups.reached", "cdb_lookups_reached_total", None),
    ("lookups.started", "cdb_lookups_started_total", None),
    ("lookups.finished", "cdb_lookups_finished_total", None),
    ("nginx.requests", "cdb_nginx_requests_total", None),
    ("nginx.dropped", "cdb_nginx_dropped_total", None),
)


class Counts:
    """Reads columns from /metrics of the service at `url`, which may be on another machine."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._before: dict[str, float] = {}
        self._when = 0.0

    def read(self) -> dict[str, float]:
        """The current gauges, and the rates per second since the last successful call. The first one has no rates.

        Gauges: `in_progress.<pool>`, `thread_limit.<pool>`, `pool_size.<database>`, `connection_limit`,
        `pgbouncer.clients.<state>`, `pgbouncer.servers.<state>`, `nginx.connections`.

        Rates: `answers.<status>` (responses, except those of the routes `metrics.WATCHING`), `errors.<code>`,
        `refusals.<pool>`, `lookups.reached`, `lookups.started`, `lookups.finished`, `nginx.requests`, `nginx.dropped`.

        `queue_ms.<pool>` is the mean time in milliseconds that requests waited for a thread since the last successful
        call. Columns whose metric the service does not have are missing. The result is empty if /metrics cannot be
        read.
        """
        samples, now = metrics.read(self._url, TIMEOUT_SECONDS), time.monotonic()
        if not samples:
            return {}
        columns = _named(samples, GAUGES)
        if connections := metrics.by_label(samples, "cdb_nginx_connections", "state"):
            columns["nginx.connections"] = sum(connections.values())
        if self._before:
            # The counters of a restarted service begin at zero again, so a negative difference counts as zero.
            rises = {name: max(0.0, value - self._before.get(name, 0.0)) for name, value in samples.items()}
            load = {name: value for name, value in rises.items() if not any(one in name for one in metrics.WATCHING)}
            columns |= {name: value / (now - self._when) for name, value in _named(load, COUNTERS).items()}
            waited = metrics.by_label(rises, "cdb_queue_seconds_sum", "pool")
            counted = metrics.by_label(rises, "cdb_queue_seconds_count", "pool")
            columns |= {f"queue_ms.{pool}": 1000 * waited[pool] / count for pool, count in counted.items() if count}
        self._before, self._when = samples, now
        return columns


def _named(samples: Mapping[str, float], wanted: tuple[tuple[str, str, str | None], ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for column, metric, label in wanted:
        if label is not None:
            values = metrics.by_label(samples, metric, label)
            found |= {f"{column}.{key}": value for key, value in values.items()}
        elif metric in samples:
            found[column] = samples[metric]
    return found
