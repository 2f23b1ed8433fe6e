"""The metrics that are counted while requests are handled.

They are created when this module is imported, so `values.share` has to be called before. Metrics that
are computed when Prometheus asks, such as the sizes of tags, are in `cdb_rest.collectors`. Labels take
few values: routes are patterns of paths, never paths.
"""

from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values

from cdb_rest.metrics.values import Number, number_of

values.ValueClass = Number

REGISTRY = CollectorRegistry()

# From less than the fastest answers take, a 304 or a small lookup, up to CDB_QUEUE_TIMEOUT_SECONDS.
SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
# Waiting is either nothing or a sign of too much work.
QUEUE_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 20)


def _counter(name: str, meaning: str, *labels: str) -> Counter:
    return Counter(name, meaning, labels, registry=REGISTRY)


def _gauge(
    name: str, meaning: str, *labels: str, together: Literal["livesum", "livemin", "livemax"] = "livesum"
) -> Gauge:
    """`together` is how the values of living processes make one: livesum, livemin, livemax."""
    return Gauge(name, meaning, labels, registry=REGISTRY, multiprocess_mode=together)


def _histogram(name: str, meaning: str, label: str, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(name, meaning, [label], registry=REGISTRY, buckets=buckets)


REQUESTS = _counter("cdb_requests_total", "Requests that were answered.", "route", "method", "status")
REQUEST_SECONDS = _histogram(
    "cdb_request_duration_seconds",
    "How long requests took in the application, to the end of their answers.",
    "route",
    SECONDS,
)
IN_PROGRESS = _gauge("cdb_requests_in_progress", "Requests that threads are at work on.", "pool")
BROKEN_OFF = _counter("cdb_answers_broken_off_total", "Answers that an error ended after they had begun.", "route")
ANSWER_BYTES = _counter("cdb_answer_bytes_total", "Bytes of the bodies of answers.", "route")
DATABASE_SECONDS = _counter("cdb_request_database_seconds_total", "Time in which requests waited for SQL.", "route")
QUERIES = _counter("cdb_request_queries_total", "Statements that requests sent to the database.", "route")
VERDICTS = _counter(
    "cdb_cache_verdicts_total",
    "Answers that caches may keep, by whether the client named what it had and whether that still held.",
    "route",
    "asked",
    "verdict",
)
ERRORS = _counter("cdb_errors_total", "Errors that clients were told, by their stable code.", "code")

# Numbers at once: a lookup has no time to lose.
LOOKUPS_REACHED = number_of(_counter("cdb_lookups_reached_total", "Lookups that reached the code that answers them."))
LOOKUPS_STARTED = number_of(
    _counter("cdb_lookups_started_total", "Queries of lookups that got a connection and were sent.")
)
LOOKUPS_FINISHED = number_of(
    _counter("cdb_lookups_finished_total", "Queries of lookups that the database has answered.")
)

QUEUE = _histogram("cdb_queue_seconds", "How long requests waited for a thread.", "pool", QUEUE_SECONDS)
REFUSALS = _counter("cdb_queue_refusals_total", "Requests refused because they had waited too long.", "pool")

CHANGES = _counter("cdb_changes_total", "Changes of global tags that were committed, by their action.", "action")
CHANGED_IOVS = _counter("cdb_changed_iovs_total", "Payload IOVs that these changes added or took away.", "how")
REPLAYS = _counter("cdb_write_replays_total", "Writes that were tried once more because another writer was first.")
EXPORTS = _gauge("cdb_exports_in_progress", "Exports that are running.")

OUTAGES = _counter("cdb_database_outages_total", "Times that a process found the database away.")
CONNECTIONS = _counter("cdb_database_connects_total", "Connections to the database, by outcome.", "outcome")
GIVEN_UP = _counter("cdb_database_given_up_total", "Connections given up because the database did not answer in time.")

REPLICA_UP = _gauge(
    "cdb_replica_up",
    "1 while a replica takes part in reading, as every process sees it.",
    "replica",
    together="livemin",
)
REPLICA_LAG = _gauge("cdb_replica_lag_seconds", "How far it is behind.", "replica", together="livemax")
REPLICA_READS = _counter(
    "cdb_replica_reads_total", "Reads sent to replicas, by what became of them.", "replica", "outcome"
)

CPU_SECONDS = _counter("cdb_process_cpu_seconds_total", "Processor time of the gunicorn processes.", "pool")
