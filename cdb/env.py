"""The configuration that comes from outside: one visible row for each environment variable.

This module is the only reader of ``os.environ``. A ``.env`` file in the project's root is read too; a variable that
is really set wins over it. An empty variable counts as not set, wherever it stands.
"""

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from environs import Env, EnvError, validate

ROOT = Path(__file__).resolve().parent.parent
# As it was before a `.env` file was read into it.
_ENVIRONMENT = dict(os.environ)


class ConfigurationError(Exception):
    """A setting is wrong, or what it points at can't be used. The message is one line, meant for the operator."""


@dataclass(frozen=True)
class Variable:
    """One environment variable: its name, its type (a reader of `environs`), its default and what it is for."""

    name: str
    kind: str
    default: Any
    meaning: str
    check: Any = None
    public: bool = False  # may be read by anyone through user_settings/<name>


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
        "All requests come through a proxy of ours, by TCP: its `X-Forwarded-For` names the client.",
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
        "CDB_MIGRATION_LOCK_TIMEOUT_SECONDS",
        "int",
        2,
        "How long a migration may wait for a lock, with lookups behind it, before it steps back and tries again.",
        validate.Range(min=1),
    ),
)


@cache
def read() -> dict[str, Any]:
    """Read every variable, typed and checked. Raises `ConfigurationError` that names the first wrong one."""
    env = Env()
    _forget_empty()
    env.read_env(str(file()), recurse=False)
    _forget_empty()
    values = {}
    for variable in VARIABLES:
        try:
            values[variable.name] = getattr(env, variable.kind)(
                variable.name, variable.default, validate=variable.check
            )
        except EnvError as error:
            reason = re.sub(r"[\[\]']", "", " ".join(str(error).split()))
            raise ConfigurationError(f"{reason} ({os.environ[variable.name]!r})") from error
    try:
        values["CDB_DATA_DIR"] = (ROOT / values["CDB_DATA_DIR"].expanduser()).resolve()
    except RuntimeError as error:
        raise ConfigurationError(f"CDB_DATA_DIR: {error}") from error
    if not values["DATABASE_URL"]:
        _forget_libpq()
    return values


def file() -> Path:
    """The file that further settings are read from, whether it exists or not."""
    return ROOT / os.environ.get("CDB_ENV_FILE", ".env")


def libpq_password() -> str:
    """The password that libpq takes where a URL has none."""
    return os.environ.get("PGPASSWORD", "")


def for_children(**more: str) -> dict[str, str]:
    """The environment that we were started in, and `more`: a child that gets it reads the `.env` file of its own time."""
    return _ENVIRONMENT | more


def _forget_empty() -> None:
    for variable in VARIABLES:
        if not os.environ.get(variable.name):
            os.environ.pop(variable.name, None)


def _forget_libpq() -> None:
    """Drop libpq's own variables, such as PGPORT: they would divert connections meant for the embedded server."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
