"""The observer that counts requests."""

from time import monotonic, process_time
from typing import NamedTuple

from cdb_rest.metrics import counts
from cdb_rest.metrics.slots import here
from cdb_rest.metrics.values import Buckets, Number, add, number_of
from cdb_rest.observe.exchange import Exchange

# A client may send any word as its method.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
NO_ROUTE = "unknown"
# What alerts ask for is there from the beginning: of what appears with its first count, nobody sees that it has risen.
RARE_ERRORS = ("internal_error", "overloaded", "database_unavailable")
CPU_EVERY_SECONDS = 1


class Kind(NamedTuple):
    """The numbers of all requests of a kind: their route, method, status, and what they say about caching."""

    requests: Number
    seconds: Buckets
    bytes: Number
    database: Number
    queries: Number
    verdict: Number | None


class MetricsObserver:
    """Counts every request and its answer."""

    def __init__(self) -> None:
        self._in_progress = number_of(counts.IN_PROGRESS.labels(here.pool))
        self._cpu = number_of(counts.CPU_SECONDS.labels(here.pool))
        self._kinds: dict[tuple[str | None, str, int, bool, bool], Kind] = {}
        self._cpu_noted = self._next_cpu = 0.0
        for code in RARE_ERRORS:
            counts.ERRORS.labels(code)

    def began(self, exchange: Exchange) -> None:
        """Note that a thread is at work."""
        self._in_progress.inc(1)

    def ended(self, exchange: Exchange, error: BaseException | None) -> None:
        """Count the answer."""
        method = exchange.method if exchange.method in METHODS else "other"
        key = exchange.route, method, exchange.status or 500, exchange.is_named, exchange.names_known
        kind = self._kinds.get(key) or self._new_kind(*key)
        seconds = exchange.seconds()
        amounts = [
            (self._in_progress, -1),
            (kind.requests, 1),
            (kind.seconds.sum, seconds),
            (kind.seconds.count_of(seconds), 1),
            (kind.bytes, exchange.bytes),
            (kind.database, exchange.database),
            (kind.queries, exchange.queries),
        ]
        if kind.verdict:
            amounts.append((kind.verdict, 1))
        add(amounts)
        if error is not None:
            counts.BROKEN_OFF.labels(exchange.route or NO_ROUTE).inc()
        now = monotonic()
        if now > self._next_cpu:
            self._next_cpu = now + CPU_EVERY_SECONDS
            self._note_cpu()

    def _new_kind(self, route: str | None, method: str, status: int, is_named: bool, names_known: bool) -> Kind:
        name = route or NO_ROUTE
        asked, verdict = "yes" if names_known else "no", "unchanged" if status == 304 else "sent"
        kind = self._kinds[route, method, status, is_named, names_known] = Kind(
            number_of(counts.REQUESTS.labels(name, method, status)),
            Buckets(counts.REQUEST_SECONDS.labels(name)),
            number_of(counts.ANSWER_BYTES.labels(name)),
            number_of(counts.DATABASE_SECONDS.labels(name)),
            number_of(counts.QUERIES.labels(name)),
            number_of(counts.VERDICTS.labels(name, asked, verdict)) if is_named else None,
        )
        return kind

    def _note_cpu(self) -> None:
        """Count the time since it was counted last; two threads at once could only meet at the limit of a second."""
        noted, self._cpu_noted = self._cpu_noted, process_time()
        self._cpu.inc(max(0.0, self._cpu_noted - noted))
