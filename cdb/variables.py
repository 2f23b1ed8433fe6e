"""Every environment variable that the service reads: one declaration each, which is also its documentation.

`make reference` writes docs/settings.md from this table. Links in a meaning are relative to docs/.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environs import validate

LEVELS = ["debug", "info", "warning", "error"]
HOST_PORT = r"(?:[^\s:]+:\d{1,5})?\Z"


@dataclass(frozen=True)
class Variable:
    """One environment variable: name, type (a reader of `environs`), default and meaning in one sentence."""

    name: str
    kind: str
    default: Any
    meaning: str
    check: Any = None
    public: bool = False  # may be read by any client through user_settings/<name>
    default_text: str = ""  # the default as the documentation tells it, where it depends on something else


@dataclass(frozen=True)
class Group:
    """Variables about one subject."""

    title: str
    variables: tuple[Variable, ...]


GROUPS = (
    Group(
        "Where things are",
        (
            Variable(
                "CDB_ENV_FILE",
                "str",
                ".env",
                "File, relative to the project's root, that further settings are read from.",
            ),
            Variable(
                "CDB_DATA_DIR", "path", Path("var"), "Directory of the embedded server's data and of generated files."
            ),
            Variable(
                "PORT",
                "int",
                8000,
                "TCP port on 127.0.0.1 that `make run` and `make serve` listen on.",
                validate.Range(1, 65535),
            ),
            Variable(
                "CDB_ALLOWED_HOSTS",
                "list",
                ["localhost", "127.0.0.1", "[::1]"],
                "Host names that the service accepts in requests.",
            ),
        ),
    ),
    Group(
        "Database",
        (
            Variable(
                "DATABASE_URL",
                "str",
                "",
                "PostgreSQL to use, as a libpq URL; empty: the embedded server under `CDB_DATA_DIR`.",
            ),
            Variable(
                "DATABASE_REPLICA_URLS",
                "str",
                "",
                "[Streaming replicas](operations.md#read-replicas) of that database to read from, as libpq URLs "
                "separated by commas.",
            ),
            Variable(
                "CDB_REPLICA_MAX_LAG_SECONDS",
                "int",
                5,
                "Lag from which on a replica is not read from; responses are never stale in any case.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_CONNECT_TIMEOUT_SECONDS",
                "int",
                5,
                "Time limit for opening a connection to PostgreSQL.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_MIGRATION_LOCK_TIMEOUT_SECONDS",
                "int",
                2,
                "Time that a migration waits for a lock, with lookups queued behind it, before it lets them pass and "
                "tries again.",
                validate.Range(min=1),
            ),
        ),
    ),
    Group(
        "Content",
        (
            Variable(
                "SCENARIO",
                "str",
                "tiny",
                "[Scenario](operations.md#commands) that `make run` and `make serve` seed into a database without "
                "global tags; `none` leaves it empty.",
            ),
            Variable(
                "CDB_IOV_MODE",
                "str",
                "continuous",
                "Meaning of the end of an IOV: `continuous` is exclusive, `discrete` is inclusive, as for experiment "
                "and run; a database keeps the mode that it was created with.",
                validate.OneOf(["continuous", "discrete"]),
                public=True,
            ),
            Variable(
                "CDB_PAYLOAD_BASE_URL",
                "str",
                "",
                "URL at which clients find the payload files; the service itself does not use it.",
                public=True,
            ),
        ),
    ),
    Group(
        "Security",
        (
            Variable(
                "CDB_SECRET_KEY",
                "str",
                "",
                "Signing key of at least 50 characters; empty: one is generated and kept in `CDB_DATA_DIR`, readable "
                "by its owner only.",
            ),
            Variable(
                "CDB_TLS",
                "bool",
                False,
                "Clients use HTTPS, which a proxy terminates: [the admin](security.md#https) and its cookies are then"
                " for HTTPS only.",
            ),
            Variable(
                "CDB_BEHIND_PROXY",
                "bool",
                False,
                "All requests come through [a trusted proxy](security.md#https), whose `X-Forwarded-For` and "
                "`X-Forwarded-User` name the client and the user.",
            ),
            Variable(
                "DEBUG",
                "bool",
                False,
                "Development mode: tracebacks in errors, [pages and a toolbar](operations.md#looking-inside) for "
                "browsers; never in production.",
            ),
        ),
    ),
    Group(
        "Requests",
        (
            Variable(
                "CDB_STRATEGIES",
                "bool",
                None,
                "Serve the routes that answer a lookup in other ways, [to compare "
                "them](operations.md#comparing-the-strategies).",
                default_text="`true` with `make run` or `DEBUG`, otherwise `false`",
            ),
            Variable(
                "CDB_MAX_BODY_BYTES",
                "int",
                16 * 1024 * 1024,
                "Largest request body; a larger one is refused with 413.",
                validate.Range(min=1024),
                public=True,
            ),
            Variable(
                "CDB_MAX_BULK_ROWS",
                "int",
                50_000,
                "Largest number of rows of a bulk request; more are refused with 413.",
                validate.Range(min=1),
                public=True,
            ),
            Variable(
                "CDB_IDEMPOTENCY_HOURS",
                "int",
                24,
                "Time for which the response to a request with an `Idempotency-Key` is kept.",
                validate.Range(1, 24 * 365),
                public=True,
            ),
            Variable(
                "CDB_MAX_EXPORTS",
                "int",
                2,
                "Largest number of [exports](api.md#exporting) at a time, of all instances on a database or replica "
                "together; more are refused with 504.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_SPOOL_BYTES",
                "int",
                1024**3,
                "Disk space that a process uses for requests above 256 KiB until they are complete, and for [slow "
                "responses](operations.md#slow-clients).",
                validate.Range(min=0),
            ),
        ),
    ),
    Group(
        "Time limits",
        (
            Variable(
                "CDB_LOOKUP_TIMEOUT_SECONDS",
                "int",
                5,
                "Time limit for a statement of a lookup or of another cheap read.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_STATEMENT_TIMEOUT_SECONDS",
                "int",
                300,
                "Time limit for a statement of a write or of a read of many rows.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_LOCK_TIMEOUT_SECONDS",
                "int",
                10,
                "Time that a write waits for another write before it fails with 504.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_EXPORT_TIMEOUT_SECONDS",
                "int",
                3600,
                "Time limit for an export; one that takes longer is aborted.",
                validate.Range(1, 24 * 3600),
            ),
            Variable(
                "CDB_QUEUE_TIMEOUT_SECONDS",
                "int",
                20,
                "Time that a request waits for a free thread before it is refused with 504.",
                validate.Range(min=1),
            ),
        ),
    ),
    Group(
        "Caching",
        (
            Variable(
                "CDB_FROZEN_MAX_AGE_SECONDS",
                "int",
                365 * 24 * 3600,
                "Time for which [caches](api.md#caching) may use a response about a frozen tag without revalidation; "
                "0: they revalidate each time.",
                validate.Range(0, 365 * 24 * 3600),
            ),
            Variable(
                "CDB_LOCKED_MAX_AGE_SECONDS",
                "int",
                0,
                "The same for locked tags; above 0, readers may see a change that much later.",
                validate.Range(0, 24 * 3600),
            ),
            Variable(
                "CDB_UNLOCKED_MAX_AGE_SECONDS",
                "int",
                0,
                "The same for unlocked tags and for the list of all tags.",
                validate.Range(0, 24 * 3600),
            ),
        ),
    ),
    Group(
        "Processes",
        (
            Variable(
                "CDB_WORKERS",
                "int",
                0,
                "gunicorn processes; 0: the number of cores plus one, or one process with `DEBUG`.",
                validate.Range(min=0),
            ),
            Variable("CDB_THREADS", "int", 4, "Threads of each gunicorn process.", validate.Range(min=1)),
        ),
    ),
    Group(
        "Logs and metrics",
        (
            Variable(
                "CDB_ACCESS_LOG",
                "str",
                "",
                "File that gets a line for each request; `-`: standard output; empty: no access log.",
            ),
            Variable(
                "CDB_LOG_LEVEL",
                "str",
                "info",
                "Lowest level of [log records](monitoring.md#following-a-request); `info` writes two for each request.",
                validate.OneOf(LEVELS),
            ),
            Variable(
                "CDB_LOG_FORMAT",
                "str",
                "auto",
                "Format of log records: `json`, `console` for people, or `auto`, which is `console` with `DEBUG` or "
                "on a terminal and `json` otherwise.",
                validate.OneOf(["auto", "json", "console"]),
            ),
            Variable(
                "CDB_LOG_FILE",
                "str",
                "",
                "File that gets the log records; `-`: standard error; empty: `serve/service.log` under `CDB_DATA_DIR`"
                " with `make serve`, and otherwise standard error.",
            ),
            Variable(
                "CDB_STATSD_HOST",
                "str",
                "",
                "Address, `host:port`, to which gunicorn sends [its metrics](monitoring.md#figures-by-statsd) by UDP;"
                " empty: none.",
                validate.Regexp(HOST_PORT),
            ),
            Variable(
                "CDB_METRICS_MAX_TAGS",
                "int",
                1000,
                "Largest number of global tags with metrics of their own in "
                "[`/metrics`](monitoring.md#metrics-and-alerts); those that changed last are chosen.",
                validate.Range(0, 100_000),
            ),
        ),
    ),
)

VARIABLES = tuple(variable for group in GROUPS for variable in group.variables)
