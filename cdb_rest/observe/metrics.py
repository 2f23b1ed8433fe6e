"""The observer that counts requests."""

from time import monotonic, process_time
from typing import NamedTuple

from prometheus_client import Counter, Gauge, Histogram

from cdb_rest.metrics import counts
from cdb_rest.metrics.place import here
from cdb_rest.observe.exchange import Exchange

# A client may send any word as its method.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
NO_ROUTE = "unknown"
CPU_EVERY_SECONDS = 1


class OfRoute(NamedTuple):
    """The metrics of one route, found once."""

    seconds: Histogram
    bytes: Counter
    database: Counter
    queries: Counter


class MetricsObserver:
    """Counts every request and its answer."""

    def __init__(self) -> None:
        self._in_progress: Gauge = counts.IN_PROGRESS.labels(here.pool)
        self._cpu: Counter = counts.CPU_SECONDS.labels(here.pool)
        self._requests: dict[tuple[str | None, str, int], Counter] = {}
        self._routes: dict[str | None, OfRoute] = {}
        self._verdicts: dict[tuple[str | None, bool, int], Counter] = {}
        self._cpu_noted = self._next_cpu = 0.0

    def began(self, exchange: Exchange) -> None:
        """Note that a thread is at work."""
        self._in_progress.inc()

    def ended(self, exchange: Exchange, error: BaseException | None) -> None:
        """Count the answer."""
        self._in_progress.dec()
        route, status = exchange.route, exchange.status or 500
        answered = self._requests.get((route, exchange.method, status))
        (answered or self._request(route, exchange.method, status)).inc()
        of_route = self._routes.get(route) or self._route(route)
        of_route.seconds.observe(exchange.seconds())
        of_route.bytes.inc(exchange.bytes)
        if exchange.queries:
            of_route.database.inc(exchange.database)
            of_route.queries.inc(exchange.queries)
        if exchange.is_named:
            self._verdict(route, exchange.names_known, status).inc()
        if error is not None:
            counts.BROKEN_OFF.labels(route or NO_ROUTE).inc()
        now = monotonic()
        if now > self._next_cpu:
            self._next_cpu = now + CPU_EVERY_SECONDS
            self._note_cpu()

    def _request(self, route: str | None, method: str, status: int) -> Counter:
        known = method if method in METHODS else "other"
        found = counts.REQUESTS.labels(route or NO_ROUTE, known, status)
        if known == method:
            self._requests[route, method, status] = found
        return found

    def _route(self, route: str | None) -> OfRoute:
        metrics = (counts.REQUEST_SECONDS, counts.ANSWER_BYTES, counts.DATABASE_SECONDS, counts.QUERIES)
        found = self._routes[route] = OfRoute(*(metric.labels(route or NO_ROUTE) for metric in metrics))
        return found

    def _verdict(self, route: str | None, asked: bool, status: int) -> Counter:
        found = self._verdicts.get((route, asked, status))
        if found is None:
            verdict = "unchanged" if status == 304 else "sent"
            found = counts.VERDICTS.labels(route or NO_ROUTE, "yes" if asked else "no", verdict)
            self._verdicts[route, asked, status] = found
        return found

    def _note_cpu(self) -> None:
        """Count the time since it was counted last; two threads at once could only meet at the limit of a second."""
        noted, self._cpu_noted = self._cpu_noted, process_time()
        self._cpu.inc(max(0.0, self._cpu_noted - noted))
