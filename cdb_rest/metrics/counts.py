"""The metrics that are counted while requests are handled.

Importing this module creates them, so processes that share their metrics must call `values.share` before. Metrics that
are computed when Prometheus scrapes the service, such as the sizes of tags, are in `cdb_rest.collectors`. Labels have
few values: a route is the pattern of a path, never a path.
"""

from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values

from cdb_rest.metrics.values import Number, number_of

values.ValueClass = Number

REGISTRY = CollectorRegistry()

# From less than the fastest responses (a 304, a small lookup) up to CDB_QUEUE_TIMEOUT_SECONDS.
SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
# Requests wait either almost not at all, or because the service is overloaded.
QUEUE_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 20)


def _counter(name: str, meaning: str, *labels: str) -> Counter:
    return Counter(name, meaning, labels, registry=REGISTRY)


def _gauge(
    name: str, meaning: str, *labels: str, together: Literal["livesum", "livemin", "livemax"] = "livesum"
) -> Gauge:
    """A gauge; `together` says how the values of the running processes are combined."""
    return Gauge(name, meaning, labels, registry=REGISTRY, multiprocess_mode=together)


def _histogram(name: str, meaning: str, label: str, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(name, meaning, [label], registry=REGISTRY, buckets=buckets)


# Metrics that were renamed, by their names without `_total`: the former name, and the former names of labels by the new
# ones. A scrape returns the metrics under both names, so that dashboards and alerts of operators continue to work.
FORMER_NAMES: dict[str, tuple[str, dict[str, str]]] = {
    "cdb_response_bytes": ("cdb_answer_bytes", {}),
    "cdb_responses_aborted": ("cdb_answers_broken_off", {}),
    "cdb_cacheable_responses": ("cdb_cache_verdicts", {"conditional": "asked", "result": "verdict"}),
    "cdb_lookups_received": ("cdb_lookups_reached", {}),
    "cdb_queue_timeouts": ("cdb_queue_refusals", {}),
    "cdb_write_retries": ("cdb_write_replays", {}),
    "cdb_database_connection_attempts": ("cdb_database_connects", {}),
    "cdb_database_timeouts": ("cdb_database_given_up", {}),
}

REQUESTS = _counter(
    "cdb_requests_total", "Requests by route, method and status of the response.", "route", "method", "status"
)
AUTHENTICATIONS = _counter(
    "cdb_authentications_total",
    "Identifications of clients by the way in which they were identified: token, jwt, session, proxy, network, none, or "
    "invalid for a token that was refused. Reads that are open to all clients identify none.",
    "method",
)
REQUEST_SECONDS = _histogram(
    "cdb_request_duration_seconds",
    "Duration of requests in the application, up to the end of the response.",
    "route",
    SECONDS,
)
IN_PROGRESS = _gauge("cdb_requests_in_progress", "Requests that threads are handling now.", "pool")
RESPONSES_ABORTED = _counter(
    "cdb_responses_aborted_total",
    "Responses that ended early, because of an error or because the client disconnected.",
    "route",
)
RESPONSE_BYTES = _counter("cdb_response_bytes_total", "Bytes of response bodies.", "route")
DATABASE_SECONDS = _counter("cdb_request_database_seconds_total", "Seconds that requests spent in SQL.", "route")
QUERIES = _counter("cdb_request_queries_total", "SQL statements of requests.", "route")
CACHEABLE_RESPONSES = _counter(
    "cdb_cacheable_responses_total",
    "Cacheable responses, by whether the request was conditional and whether the result was a 304.",
    "route",
    "conditional",
    "result",
)
ERRORS = _counter("cdb_errors_total", "Error responses by error code.", "code")

# Number objects, which are faster than counters with labels.
LOOKUPS_RECEIVED = number_of(_counter("cdb_lookups_received_total", "Lookups that reached the application."))
LOOKUPS_STARTED = number_of(_counter("cdb_lookups_started_total", "Lookup queries that were sent to the database."))
LOOKUPS_FINISHED = number_of(_counter("cdb_lookups_finished_total", "Lookup queries that the database has finished."))

QUEUE = _histogram("cdb_queue_seconds", "Time that requests waited for a thread.", "pool", QUEUE_SECONDS)
QUEUE_TIMEOUTS = _counter(
    "cdb_queue_timeouts_total",
    "Requests rejected because they had waited too long for a thread, or because of an overload.",
    "pool",
)
OVERLOAD_SECONDS = _counter(
    "cdb_overload_seconds_total",
    "Time, summed over the processes, of an overload, in which further lookups are rejected.",
    "pool",
)

CHANGES = _counter("cdb_changes_total", "Committed changes of global tags, by action.", "action")
CHANGED_IOVS = _counter("cdb_changed_iovs_total", "Payload IOVs that these changes added or removed.", "how")
WRITE_RETRIES = _counter("cdb_write_retries_total", "Writes that were retried because of a concurrent write.")
EXPORTS = _gauge("cdb_exports_in_progress", "Exports that are running.")

OUTAGES = _counter("cdb_database_outages_total", "Times that a process found the database down.")
CONNECTION_ATTEMPTS = _counter(
    "cdb_database_connection_attempts_total", "Connections to the database, by outcome.", "outcome"
)
DATABASE_TIMEOUTS = _counter(
    "cdb_database_timeouts_total", "Connections that were closed because the database did not respond in time."
)

REPLICA_UP = _gauge(
    "cdb_replica_up",
    "1 while a replica is in rotation in every process, else 0.",
    "replica",
    together="livemin",
)
REPLICA_LAG = _gauge(
    "cdb_replica_lag_seconds", "Replication lag of the replica in seconds.", "replica", together="livemax"
)
REPLICA_READS = _counter("cdb_replica_reads_total", "Reads sent to replicas, by outcome.", "replica", "outcome")

SHARED_STATES = number_of(
    _counter(
        "cdb_shared_states_total",
        "Reads that used the state of the tag as another request had read it since they arrived.",
    )
)

COMPILED_LOOKUPS = _counter(
    "cdb_compiled_lookups_total",
    "Lookups in compiled tags by the part of the database: none (it was not asked), confirmed (it said that the tag has not "
    "changed), shared (another request had asked it after this one arrived), changed (it answered for the lists that have "
    "changed), or all (it answered for all lists).",
    "database",
)
COMPILED_ALONE, COMPILED_CONFIRMED, COMPILED_SHARED, COMPILED_CHANGED, COMPILED_ALL = (
    number_of(COMPILED_LOOKUPS.labels(kind)) for kind in ("none", "confirmed", "shared", "changed", "all")
)
COMPILED_CHANGED_LISTS = number_of(
    _counter(
        "cdb_compiled_changed_lists_total", "Changed payload lists of compiled tags for which the database answered."
    )
)
COMPILED_DAMAGED = number_of(
    _counter(
        "cdb_compiled_damaged_total", "Compiled tags whose files were changed or deleted while a process had them open."
    )
)
COMPILED_TAGS = _gauge("cdb_compiled_tags", "Compiled tags on this host.", together="livemax")
COMPILED_BYTES = _gauge("cdb_compiled_bytes", "Size of the compiled tags on this host.", together="livemax")
COMPILATIONS = _counter(
    "cdb_compilations_total", "Compilations of tags that the service started, by outcome.", "outcome"
)
for _outcome in ("success", "failure"):
    COMPILATIONS.labels(_outcome)
COMPILE_SECONDS = _counter("cdb_compile_seconds_total", "Duration of these compilations in seconds.")

CPU_SECONDS = _counter("cdb_process_cpu_seconds_total", "CPU time of the gunicorn processes in seconds.", "pool")
