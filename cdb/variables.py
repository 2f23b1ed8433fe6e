"""Every environment variable that the service knows: one visible row each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environs import validate


@dataclass(frozen=True)
class Variable:
    """One environment variable: its name, its type (a reader of `environs`), its default and what it is for."""

    name: str
    kind: str
    default: Any
    meaning: str
    check: Any = None
    public: bool = False  # may be read by anyone through user_settings/<name>


LEVELS = ["debug", "info", "warning", "error"]
HOST_PORT = r"(?:[^\s:]+:\d{1,5})?\Z"

VARIABLES = (
    Variable("CDB_ENV_FILE", "str", ".env", "File, from the project's root, that further settings are read from."),
    Variable(
        "DATABASE_URL", "str", "", "PostgreSQL to use, as a libpq URL; empty: the embedded server under `CDB_DATA_DIR`."
    ),
    Variable(
        "DATABASE_REPLICA_URLS",
        "str",
        "",
        "Streaming replicas of it to read from, as libpq URLs with commas between.",
    ),
    Variable(
        "CDB_REPLICA_MAX_LAG_SECONDS",
        "int",
        5,
        "How far a replica may be behind before it takes no part in reading; answers are never old in any case.",
        validate.Range(min=1),
    ),
    Variable("CDB_DATA_DIR", "path", Path("var"), "Directory of the embedded server's data and of generated files."),
    Variable("PORT", "int", 8000, "TCP port on 127.0.0.1 that `make run` serves.", validate.Range(1, 65535)),
    Variable(
        "SCENARIO",
        "str",
        "tiny",
        "Scenario that `make run` seeds into a database without global tags; `none` leaves it empty.",
    ),
    Variable(
        "CDB_IOV_MODE",
        "str",
        "continuous",
        "How the end of an IOV is meant: `continuous` (exclusive) or `discrete` (inclusive: experiment and run).",
        validate.OneOf(["continuous", "discrete"]),
        public=True,
    ),
    Variable(
        "CDB_PAYLOAD_BASE_URL",
        "str",
        "",
        "Where clients find the payload files; handed out by `user_settings`, never used by the service.",
        public=True,
    ),
    Variable(
        "CDB_MAX_BODY_BYTES",
        "int",
        16 * 1024 * 1024,
        "Largest request body that is accepted; more is answered with 413.",
        validate.Range(min=1024),
        public=True,
    ),
    Variable(
        "CDB_MAX_BULK_ROWS",
        "int",
        50_000,
        "Most rows of one bulk request; more is answered with 413.",
        validate.Range(min=1),
        public=True,
    ),
    Variable(
        "CDB_IDEMPOTENCY_HOURS",
        "int",
        24,
        "How long the answer to a request with an `Idempotency-Key` is kept.",
        validate.Range(1, 24 * 365),
        public=True,
    ),
    Variable(
        "CDB_FROZEN_MAX_AGE_SECONDS",
        "int",
        365 * 24 * 3600,
        "How long answers of frozen tags may be kept without asking again; 0: caches ask each time.",
        validate.Range(0, 365 * 24 * 3600),
    ),
    Variable(
        "CDB_LOCKED_MAX_AGE_SECONDS",
        "int",
        0,
        "The same for locked tags; more than 0 means that readers may see a change that much later.",
        validate.Range(0, 24 * 3600),
    ),
    Variable(
        "CDB_UNLOCKED_MAX_AGE_SECONDS",
        "int",
        0,
        "The same for unlocked tags and for the list of all tags.",
        validate.Range(0, 24 * 3600),
    ),
    Variable("CDB_ALLOWED_HOSTS", "list", ["localhost", "127.0.0.1", "[::1]"], "Host names the service answers to."),
    Variable(
        "CDB_SECRET_KEY",
        "str",
        "",
        "Signing key; empty: one is generated and kept in `CDB_DATA_DIR`, readable by its owner only.",
    ),
    Variable(
        "CDB_TLS",
        "bool",
        False,
        "Clients come by HTTPS, through a proxy: the admin is for HTTPS alone, and its cookies too.",
    ),
    Variable(
        "CDB_BEHIND_PROXY",
        "bool",
        False,
        "All requests come through a proxy of ours: its `X-Forwarded-For` and `X-Forwarded-User` name client and user.",
    ),
    Variable("DEBUG", "bool", False, "Development mode: tracebacks, pages for browsers. Never in production."),
    Variable(
        "CDB_STRATEGIES", "bool", False, "Routes that answer a lookup in other ways, to compare; always on with DEBUG."
    ),
    Variable(
        "CDB_WORKERS", "int", 0, "gunicorn processes; 0: cores plus one, or one with DEBUG.", validate.Range(min=0)
    ),
    Variable("CDB_THREADS", "int", 4, "Threads of each gunicorn process.", validate.Range(min=1)),
    Variable(
        "CDB_ACCESS_LOG", "str", "", "File that gets a line for each request; `-`: standard output; empty: no such log."
    ),
    Variable("CDB_LOG_LEVEL", "str", "info", "Least level of records.", validate.OneOf(LEVELS)),
    Variable("CDB_LOG_FORMAT", "str", "auto", "How records look.", validate.OneOf(["auto", "json", "console"])),
    Variable(
        "CDB_LOG_FILE", "str", "", "File that gets the records; `-`, or empty without `make serve`: standard error."
    ),
    Variable(
        "CDB_STATSD_HOST", "str", "", "Where gunicorn sends figures by UDP, host:port.", validate.Regexp(HOST_PORT)
    ),
    Variable(
        "CDB_LOOKUP_TIMEOUT_SECONDS",
        "int",
        5,
        "How long a statement of a lookup, or of another cheap read, may take.",
        validate.Range(min=1),
    ),
    Variable(
        "CDB_STATEMENT_TIMEOUT_SECONDS",
        "int",
        300,
        "How long a statement of a write, or of a read of many rows, may take.",
        validate.Range(min=1),
    ),
    Variable(
        "CDB_LOCK_TIMEOUT_SECONDS",
        "int",
        10,
        "How long a write may wait for another one before it is answered with 504.",
        validate.Range(min=1),
    ),
    Variable(
        "CDB_MAX_EXPORTS",
        "int",
        2,
        "Most exports at a time, of all instances on a database or replica together; more are answered with 504.",
        validate.Range(min=1),
    ),
    Variable(
        "CDB_EXPORT_TIMEOUT_SECONDS",
        "int",
        3600,
        "How long an export may take; one that takes longer breaks off.",
        validate.Range(1, 24 * 3600),
    ),
    Variable(
        "CDB_CONNECT_TIMEOUT_SECONDS",
        "int",
        5,
        "How long a connection to PostgreSQL may take to open.",
        validate.Range(min=1),
    ),
    Variable(
        "CDB_QUEUE_TIMEOUT_SECONDS",
        "int",
        20,
        "How long a request may wait for a free thread before it is answered with 504.",
        validate.Range(min=1),
    ),
    Variable(
        "CDB_SPOOL_BYTES",
        "int",
        1024**3,
        "Most bytes that a process keeps in files: requests above 256 KiB until they are complete, and slow responses.",
        validate.Range(min=0),
    ),
    Variable(
        "CDB_METRICS_MAX_TAGS",
        "int",
        1000,
        "Most global tags that `/metrics` tells of one by one: those that changed last.",
        validate.Range(0, 100_000),
    ),
    Variable(
        "CDB_MIGRATION_LOCK_TIMEOUT_SECONDS",
        "int",
        2,
        "How long a migration may wait for a lock, with lookups behind it, before it steps back and tries again.",
        validate.Range(min=1),
    ),
)
