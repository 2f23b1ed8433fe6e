"""The declarations of all environment variables that the service reads.

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
    public: bool = False  # clients can read it at user_settings/<name>
    default_text: str = ""  # the default in the documentation, if it depends on other settings


@dataclass(frozen=True)
class Group:
    """Variables about one subject."""

    title: str
    variables: tuple[Variable, ...]


GROUPS = (
    Group(
        "Paths and addresses",
        (
            Variable(
                "CDB_ENV_FILE",
                "str",
                ".env",
                "File with further settings, relative to the project's root.",
            ),
            Variable(
                "CDB_DATA_DIR",
                "path",
                Path("var"),
                "Directory for the data of the embedded PostgreSQL and for generated files.",
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
                "Host names that the service accepts in the `Host` header of requests.",
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
                "URL of the PostgreSQL database, for libpq; empty: the embedded PostgreSQL under `CDB_DATA_DIR`.",
            ),
            Variable(
                "DATABASE_REPLICA_URLS",
                "str",
                "",
                "URLs, separated by commas, of [streaming replicas](read-replicas.md#set-up-a-replica) of that database, from "
                "which the service reads.",
            ),
            Variable(
                "CDB_REPLICA_MAX_LAG_SECONDS",
                "int",
                5,
                "Replication lag above which a replica is out of rotation; responses are never stale in any case.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_CONNECT_TIMEOUT_SECONDS",
                "int",
                5,
                "Timeout for opening a connection to PostgreSQL.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_MIGRATION_LOCK_TIMEOUT_SECONDS",
                "int",
                2,
                "Time that a migration waits for a table lock, while lookups queue behind it, before it gives up the "
                "attempt and retries later.",
                validate.Range(min=1),
            ),
        ),
    ),
    Group(
        "Compiled tags",
        (
            Variable(
                "CDB_COMPILED_BYTES",
                "int",
                None,
                "Maximum size of all [compiled tags](compiled-tags.md) of this host in bytes; 0: none are made or used.",
                validate.Range(min=0),
                default_text="an eighth of the memory of the machine or container",
            ),
            Variable(
                "CDB_COMPILED_DIR",
                "str",
                "",
                "Directory of the compiled tags, on a local disk; empty: `compiled` under `CDB_DATA_DIR`.",
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
                "[Scenario](example-data.md) that `make run` and `make serve` seed if the database has no "
                "global tag; `none` seeds nothing.",
            ),
            Variable(
                "CDB_IOV_MODE",
                "str",
                "continuous",
                "Meaning of the end of an IOV: exclusive with `continuous`, inclusive with `discrete`, as for experiment "
                "and run; the mode of a database can't be changed after its creation.",
                validate.OneOf(["continuous", "discrete"]),
                public=True,
            ),
            Variable(
                "CDB_PAYLOAD_BASE_URL",
                "str",
                "",
                "Base URL of the payload files, for clients; the service itself does not use it.",
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
                "Signing key of at least 50 characters; empty: a key is generated and stored in `CDB_DATA_DIR`, readable "
                "only by its owner.",
            ),
            Variable(
                "CDB_TLS",
                "bool",
                False,
                "Clients use HTTPS, which a proxy terminates: [the admin](security.md#https) and its cookies then "
                "require HTTPS.",
            ),
            Variable(
                "CDB_BEHIND_PROXY",
                "bool",
                False,
                "All requests come through [a trusted proxy](security.md#https), whose `X-Forwarded-For` and "
                "`X-Forwarded-User` headers name the client and the user.",
            ),
            Variable(
                "DEBUG",
                "bool",
                False,
                "Development mode: error responses with tracebacks, and [HTML pages with a "
                "toolbar](find-slow-request.md#look-inside-with-debug) for browsers; do not use it in production.",
            ),
        ),
    ),
    Group(
        "Access",
        (
            Variable(
                "CDB_OPEN_WRITES",
                "bool",
                None,
                "Accept writes from all clients, without [access rules](access.md); protect the service by its network then.",
                default_text="`true` with `make run`, otherwise `false`",
            ),
            Variable(
                "CDB_ANONYMOUS_READS",
                "bool",
                True,
                "Accept reads from all clients; `false`: reads need [the role reader](access.md#close-reads).",
            ),
            Variable(
                "CDB_ISSUERS_FILE",
                "str",
                "",
                "TOML file with [the issuers of tokens](access.md#tokens-of-an-identity-provider) that the service trusts; "
                "empty: none.",
            ),
            Variable(
                "CDB_ACCESS_CONTACT",
                "str",
                "an administrator of this service",
                "Whom the error message for a missing permission says to ask.",
            ),
            Variable(
                "CDB_DOCUMENTATION_URL",
                "str",
                "",
                "Address of the documentation site that `make docs` builds, for the link on the [web pages](web-pages.md); "
                "empty: no link.",
                validate.Regexp(r"(https?://\S+)?$"),
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
                "Serve the additional routes that implement the lookup with other strategies, [to compare "
                "them](compare-strategies.md#run-the-comparison).",
                default_text="`true` with `make run` or `DEBUG`, otherwise `false`",
            ),
            Variable(
                "CDB_MAX_BODY_BYTES",
                "int",
                16 * 1024 * 1024,
                "Maximum size of a request body; a larger one is rejected with 413.",
                validate.Range(min=1024),
                public=True,
            ),
            Variable(
                "CDB_MAX_BULK_ROWS",
                "int",
                50_000,
                "Maximum number of rows in a bulk request; one with more rows is rejected with 413.",
                validate.Range(min=1),
                public=True,
            ),
            Variable(
                "CDB_IDEMPOTENCY_HOURS",
                "int",
                24,
                "Time for which the response to a request with an `Idempotency-Key` is stored.",
                validate.Range(1, 24 * 365),
                public=True,
            ),
            Variable(
                "CDB_MAX_EXPORTS",
                "int",
                2,
                "Maximum number of concurrent [exports](api.md#exporting) and other large reads on each database or replica, for "
                "all instances together; a further one is rejected with 504.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_SPOOL_BYTES",
                "int",
                1024**3,
                "Disk space that each process may use for incomplete requests above 256 KiB and for responses to [slow "
                "clients](run-modes.md#slow-clients).",
                validate.Range(min=0),
            ),
        ),
    ),
    Group(
        "Timeouts",
        (
            Variable(
                "CDB_LOOKUP_TIMEOUT_SECONDS",
                "int",
                5,
                "Timeout for a statement of a lookup or another short read.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_STATEMENT_TIMEOUT_SECONDS",
                "int",
                300,
                "Timeout for a statement of a write or a read of many rows.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_LOCK_TIMEOUT_SECONDS",
                "int",
                10,
                "Time that a write waits for a lock of another write before it fails with 504.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_EXPORT_TIMEOUT_SECONDS",
                "int",
                3600,
                "Timeout for an export, after which it is aborted.",
                validate.Range(1, 24 * 3600),
            ),
            Variable(
                "CDB_QUEUE_TIMEOUT_SECONDS",
                "int",
                20,
                "Time that a request waits for a free thread before it is rejected with 504.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_OVERLOAD_WAIT_SECONDS",
                "int",
                1,
                "With `make serve` and in containers: during an [overload](limits.md#overload), lookups whose estimated wait for "
                "a free thread is longer are rejected at once with 504.",
                validate.Range(min=1),
            ),
            Variable(
                "CDB_BURST_SECONDS",
                "int",
                10,
                "An [overload](limits.md#overload) begins when lookups have waited for a free thread without a break for "
                "this time; before, only `CDB_QUEUE_TIMEOUT_SECONDS` limits their wait.",
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
                "Time for which [caches](caching.md) may use a response for a frozen tag without revalidation; "
                "0: they revalidate it each time.",
                validate.Range(0, 365 * 24 * 3600),
            ),
            Variable(
                "CDB_LOCKED_MAX_AGE_SECONDS",
                "int",
                0,
                "The same for locked tags; above 0, clients may see a change with that delay.",
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
                "Number of gunicorn worker processes; 0: the number of cores plus one, or one process with `DEBUG`.",
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
                "File to which one line is written for each request; `-`: standard output; empty: no access log.",
            ),
            Variable(
                "CDB_LOG_LEVEL",
                "str",
                "info",
                "Lowest level of [log records](find-slow-request.md#follow-a-request) that are written; `info` writes two "
                "for each request.",
                validate.OneOf(LEVELS),
            ),
            Variable(
                "CDB_LOG_FORMAT",
                "str",
                "auto",
                "Format of log records: `json`, `console` (readable text), or `auto`, which is `console` with `DEBUG` or "
                "on a terminal and `json` otherwise.",
                validate.OneOf(["auto", "json", "console"]),
            ),
            Variable(
                "CDB_LOG_FILE",
                "str",
                "",
                "File to which log records are written; `-`: standard error; empty: `serve/service.log` under "
                "`CDB_DATA_DIR` with `make serve`, otherwise standard error.",
            ),
            Variable(
                "CDB_STATSD_HOST",
                "str",
                "",
                "Address, `host:port`, of the statsd server to which gunicorn sends [its "
                "metrics](monitoring.md#send-metrics-to-statsd) over UDP; empty: none.",
                validate.Regexp(HOST_PORT),
            ),
            Variable(
                "CDB_METRICS_MAX_TAGS",
                "int",
                1000,
                "Maximum number of global tags with their own time series in "
                "[`/metrics`](monitoring.md#collect-metrics-and-alerts), the most recently changed ones first.",
                validate.Range(0, 100_000),
            ),
        ),
    ),
)

VARIABLES = tuple(variable for group in GROUPS for variable in group.variables)
