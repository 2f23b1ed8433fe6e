"""The metrics that are counted while requests are handled, by prometheus_client in its multiprocess mode.

Figures of nginx, PostgreSQL and the processes come from their own exporters (docs/monitoring.md). Those of global tags are read
when Prometheus scrapes the service (`cdb_rest.api.service`). Labels have few values: a route is the pattern of a path, never
a path.
"""

from prometheus_client import Counter, Gauge, Histogram

# From less than the fastest responses (a 304, a small lookup) up to CDB_QUEUE_TIMEOUT_SECONDS.
SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
# Requests wait either almost not at all, or because the service is overloaded.
QUEUE_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10)

REQUESTS = Counter(
    "cdb_requests_total", "Requests by route, method and status of the response.", ["route", "method", "status"]
)
REQUEST_SECONDS = Histogram(
    "cdb_request_duration_seconds",
    "Duration of requests in the application, up to the end of the response.",
    ["route"],
    buckets=SECONDS,
)
DATABASE_SECONDS = Counter("cdb_request_database_seconds_total", "Seconds that requests spent in SQL.", ["route"])
IN_PROGRESS = Gauge("cdb_requests_in_progress", "Requests that threads are handling now.", multiprocess_mode="livesum")
ERRORS = Counter("cdb_errors_total", "Error responses by error code.", ["code"])
# These series exist from the start: alerts use rate(), which misses the first count of a new series.
for _code in ("internal_error", "overloaded", "database_unavailable"):
    ERRORS.labels(_code)
QUEUE = Histogram(
    "cdb_queue_seconds", "Time from nginx until a thread began to handle a request.", buckets=QUEUE_SECONDS
)

LOOKUPS_RECEIVED = Counter("cdb_lookups_received_total", "Lookups that reached the application.")
LOOKUPS_STARTED = Counter("cdb_lookups_started_total", "Lookup queries that were sent to the database.")
LOOKUPS_FINISHED = Counter("cdb_lookups_finished_total", "Lookup queries that the database has finished.")
SHARED_STATES = Counter(
    "cdb_shared_states_total", "Reads that used the state of a tag as another request had read it since they began."
)
UNCHANGED = Counter("cdb_unchanged_total", "Responses that only say that the client's copy is current (304).")
CHANGES = Counter("cdb_changes_total", "Committed changes of global tags, by action.", ["action"])
CHANGED_IOVS = Counter("cdb_changed_iovs_total", "Payload IOVs that these changes added or removed.", ["how"])

REPLICA_UP = Gauge(
    "cdb_replica_up",
    "1 while a replica is in rotation in every process, else 0.",
    ["replica"],
    multiprocess_mode="livemin",
)
REPLICA_LAG = Gauge(
    "cdb_replica_lag_seconds", "Replication lag of the replica in seconds.", ["replica"], multiprocess_mode="livemax"
)

DELIVERIES = Counter("cdb_deliveries_total", "Deliveries of changes to subscriptions, by outcome.", ["outcome"])
for _outcome in ("success", "failure"):
    DELIVERIES.labels(_outcome)

COMPILED_LOOKUPS = Counter(
    "cdb_compiled_lookups_total",
    "Lookups in tags with compiled lists by the part of the database: none (it was not asked), confirmed (it said that the tag "
    "has not changed), shared (another request had asked it after this one began), changed (it answered for the lists that are "
    "not compiled), or all (the tag has changed, and it answered for all lists).",
    ["database"],
)
COMPILED_ALONE, COMPILED_CONFIRMED, COMPILED_SHARED, COMPILED_CHANGED, COMPILED_ALL = (
    COMPILED_LOOKUPS.labels(kind) for kind in ("none", "confirmed", "shared", "changed", "all")
)
COMPILED_DAMAGED = Counter(
    "cdb_compiled_damaged_total", "Files of compiled lists that were changed while a process had them open."
)
COMPILED_PACKS = Gauge("cdb_compiled_packs", "Files of compiled lists on this host.", multiprocess_mode="livemax")
COMPILED_BYTES = Gauge("cdb_compiled_bytes", "Size of the compiled lists on this host.", multiprocess_mode="livemax")
COMPILATIONS = Counter("cdb_compilations_total", "Compilations of tags by the compiler, by outcome.", ["outcome"])
for _outcome in ("success", "failure"):
    COMPILATIONS.labels(_outcome)
COMPILE_SECONDS = Counter("cdb_compile_seconds_total", "Duration of these compilations in seconds.")
