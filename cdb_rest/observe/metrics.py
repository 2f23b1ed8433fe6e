"""The observer that counts requests."""

from time import monotonic, process_time
from typing import NamedTuple

from cdb_rest.metrics import counts
from cdb_rest.metrics.slots import here
from cdb_rest.metrics.values import Buckets, Number, add, number_of
from cdb_rest.observe.request_context import RequestContext

# Other methods are counted as "other", because a client may send any word.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
NO_ROUTE = "unknown"
# These series exist from the start: alerts use rate(), which misses the first count of a new series.
RARE_ERRORS = ("internal_error", "overloaded", "database_unavailable")
CPU_INTERVAL_SECONDS = 1


class Series(NamedTuple):
    """The counters to which a request is added. Only `requests` is by route, method and status.

    `cacheable` is by route, by whether the request was conditional, and by whether the status is 304; it is None if the
    response has no ETag. The others are by route, so several series share them.
    """

    requests: Number
    seconds: Buckets
    bytes: Number
    database: Number
    queries: Number
    cacheable: Number | None


class MetricsObserver:
    """An observer that counts requests and responses."""

    def __init__(self) -> None:
        self._in_progress = number_of(counts.IN_PROGRESS.labels(here.pool))
        self._cpu = number_of(counts.CPU_SECONDS.labels(here.pool))
        self._series: dict[tuple[str | None, str, int, bool, bool], Series] = {}
        self._cpu_counted = self._next_cpu = 0.0
        for code in RARE_ERRORS:
            counts.ERRORS.labels(code)

    def began(self, context: RequestContext) -> None:
        """Count the request as in progress."""
        self._in_progress.inc(1)

    def ended(self, context: RequestContext, error: BaseException | None) -> None:
        """Count the end of the request. A request that has no status counts as one with status 500."""
        method = context.method if context.method in METHODS else "other"
        key = context.route, method, context.status or 500, context.has_etag, context.is_conditional
        series = self._series.get(key) or self._new_series(*key)
        seconds = context.seconds()
        amounts = [
            (self._in_progress, -1),
            (series.requests, 1),
            (series.seconds.sum, seconds),
            (series.seconds.count_of(seconds), 1),
            (series.bytes, context.bytes),
            (series.database, context.database),
            (series.queries, context.queries),
        ]
        if series.cacheable:
            amounts.append((series.cacheable, 1))
        add(amounts)
        if error is not None:
            counts.RESPONSES_ABORTED.labels(context.route or NO_ROUTE).inc()
        now = monotonic()
        if now > self._next_cpu:
            self._next_cpu = now + CPU_INTERVAL_SECONDS
            self._count_cpu()

    def _new_series(self, route: str | None, method: str, status: int, has_etag: bool, is_conditional: bool) -> Series:
        name = route or NO_ROUTE
        conditional, result = "yes" if is_conditional else "no", "unchanged" if status == 304 else "sent"
        series = self._series[route, method, status, has_etag, is_conditional] = Series(
            number_of(counts.REQUESTS.labels(name, method, status)),
            Buckets(counts.REQUEST_SECONDS.labels(name)),
            number_of(counts.RESPONSE_BYTES.labels(name)),
            number_of(counts.DATABASE_SECONDS.labels(name)),
            number_of(counts.QUERIES.labels(name)),
            number_of(counts.CACHEABLE_RESPONSES.labels(name, conditional, result)) if has_etag else None,
        )
        return series

    def _count_cpu(self) -> None:
        """Count the processor time of this process since the last call.

        It has no lock, because threads hardly ever call it at the same time. If they do, the time may count twice.
        """
        counted, self._cpu_counted = self._cpu_counted, process_time()
        self._cpu.inc(max(0.0, self._cpu_counted - counted))
