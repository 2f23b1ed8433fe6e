"""Which PostgreSQL the service uses: the one that DATABASE_URL names, or the embedded one."""

import contextlib
import getpass
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2.extensions import parse_dsn

from cdb import env
from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ConfigurationError
from cdb_rest.connections import iov_mode

# A server that vanished with its network is noticed, idle or in the middle of a statement, after 20 to 25 s.
DEAD_NETWORK = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}


def embedded(options: dict[str, str] | None = None) -> EmbeddedPostgres | None:
    """The embedded server, or None where DATABASE_URL names another one. `options` are settings to start it with, by name."""
    values = env.read()
    return None if values["DATABASE_URL"] else EmbeddedPostgres(values["CDB_DATA_DIR"] / "postgres", options)


# The server that this process keeps running.
_in_use: EmbeddedPostgres | None = None


def in_use() -> EmbeddedPostgres | None:
    """The embedded server that this process keeps running, if any."""
    return _in_use


def url() -> str:
    """The libpq URL of the service's database."""
    server = embedded()
    return server.url if server else env.read()["DATABASE_URL"]


def parts() -> dict[str, str]:
    """The same as libpq understands it, by the names of its parameters. Raises `ConfigurationError` for no such URL."""
    return _parse(url())


def settings() -> dict[str, Any]:
    """The `DATABASES["default"]` entry. libpq itself parses the URL, so all that libpq knows may stand in it.

    Raises `ConfigurationError` when it is no PostgreSQL URL.
    """
    return _settings(parts())


def replica_urls() -> list[str]:
    """The libpq URLs of the streaming replicas."""
    # A URL may have commas of its own, between several hosts, which is said to be wrong where it is parsed.
    return [url.strip() for url in re.split(r",(?=\s*postgres)", env.read()["DATABASE_REPLICA_URLS"]) if url.strip()]


def replica_parts() -> list[dict[str, str]]:
    """The same as libpq understands them. Raises `ConfigurationError` where one is no such URL, or names several servers."""
    replicas = [_parse(url, "DATABASE_REPLICA_URLS") for url in replica_urls()]
    for named in replicas:
        # One could be asked how far it is, and another one, which is behind, for the rows.
        if "," in named.get("host", "") + named.get("hostaddr", ""):
            raise ConfigurationError(
                "DATABASE_REPLICA_URLS must name one server in each URL; give each server a URL of its own"
            )
    return replicas


def replica_settings() -> dict[str, dict[str, Any]]:
    """The entries of `DATABASES` for the replicas, by alias. Raises `ConfigurationError` where one is no PostgreSQL URL."""
    mirror = {"TEST": {"MIRROR": "default"}}
    return {f"replica_{number}": _settings(named) | mirror for number, named in enumerate(replica_parts(), 1)}


def _settings(named: dict[str, str]) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        # Where no name is given, libpq takes the user's.
        "NAME": named.pop("dbname", None) or named.get("user") or getpass.getuser(),
        "USER": named.pop("user", ""),
        "PASSWORD": named.pop("password", ""),
        "HOST": named.pop("host", ""),
        "PORT": named.pop("port", ""),
        "OPTIONS": {
            "connect_timeout": env.read()["CDB_CONNECT_TIMEOUT_SECONDS"],
            "fallback_application_name": _program(),
        }
        | DEAD_NETWORK
        | named,
        # A thread keeps its connection, so that a request costs no new one; a lost one is noticed before it is used.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
    }


@contextlib.contextmanager
def available(options: dict[str, str] | None = None) -> Iterator[None]:
    """Make sure inside the block that the database answers: start the embedded one, or reach the external one.

    `options` are settings for an embedded one that has to be started, by name. Raises `ConfigurationError` with one line
    when it can't be reached.
    """
    server = embedded(options)
    if server is None:
        check()
        yield
        return
    server.acquire()
    global _in_use
    _in_use = server
    try:
        check()
        yield
    finally:
        # An impatient second Ctrl-C must not leave the server behind.
        previous = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            server.release()
        finally:
            _in_use = None
            for number, handler in previous.items():
                signal.signal(number, handler)


def _program() -> str:
    """What PostgreSQL calls our connections where the URL has no name for them: a command of manage.py, or the service."""
    is_command = Path(sys.argv[0]).name == "manage.py" and len(sys.argv) > 1
    return f"cdb-{sys.argv[1]}" if is_command else "cdb"


def _parse(database_url: str, variable: str = "DATABASE_URL") -> dict[str, str]:
    if not database_url.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError(f"{variable} must look like postgresql://user:password@host:5432/database")
    try:
        return parse_dsn(database_url)
    except psycopg2.ProgrammingError as error:
        # Only what libpq says before it quotes: what it quotes may be a part of the password.
        reason = str(error).removeprefix("invalid dsn: ").split('"')[0].strip(" :\n")
        raise ConfigurationError(f"{variable} is not valid: {reason} (special characters are written %XX)") from error


def check() -> None:
    """Raise `ConfigurationError` if the database can't be reached, or was made with another CDB_IOV_MODE."""
    named = parts()
    try:
        check_mode()
    except psycopg2.OperationalError as error:
        where = f"{named.get('host', 'localhost')}:{named.get('port', '5432')}/{named.get('dbname', '')}"
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"can't reach the database at {where} (DATABASE_URL): {reason}") from error


def check_mode() -> None:
    """Raise `ConfigurationError` if the database was made with another CDB_IOV_MODE.

    Raises `psycopg2.OperationalError` if it can't be reached.
    """
    connect_timeout = {"connect_timeout": env.read()["CDB_CONNECT_TIMEOUT_SECONDS"]}
    with contextlib.closing(psycopg2.connect(**connect_timeout | parts())) as connection:
        conflict = iov_mode.conflict(iov_mode.recorded(connection.cursor()), env.read()["CDB_IOV_MODE"])
    if conflict:
        raise ConfigurationError(conflict)
