"""The PostgreSQL server that the service uses: that of DATABASE_URL, or the embedded one.

All functions except `in_use` raise `ConfigurationError` if an environment variable is invalid.
"""

import contextlib
import getpass
import os
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

# A connection whose network is down fails after 20 to 25 s, both while idle and during a statement.
TCP_TIMEOUTS = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}


def embedded(options: dict[str, str] | None = None) -> EmbeddedPostgres | None:
    """A new object for the embedded server, which it does not start; None if DATABASE_URL is set.

    `options` are PostgreSQL's settings by name. They take effect only if this object starts the server.
    """
    values = env.read()
    return None if values["DATABASE_URL"] else EmbeddedPostgres(values["CDB_DATA_DIR"] / "postgres", options)


# The embedded server that `available` has acquired in this process.
_in_use: EmbeddedPostgres | None = None


def in_use() -> EmbeddedPostgres | None:
    """The embedded server that this process uses inside an `available` block; otherwise None."""
    return _in_use


def url() -> str:
    """The libpq URL of the service's database. DATABASE_URL is not validated here, but by `parts`."""
    server = embedded()
    return server.url if server else env.read()["DATABASE_URL"]


def parts() -> dict[str, str]:
    """The connection parameters of the service's database, by libpq's names.

    Raises `ConfigurationError` if DATABASE_URL is not a PostgreSQL URL.
    """
    return _parse(url())


def settings() -> dict[str, Any]:
    """The `DATABASES["default"]` entry. libpq parses the URL, so every parameter of libpq is allowed in it.

    Raises `ConfigurationError` if DATABASE_URL is not a PostgreSQL URL.
    """
    return _settings(parts())


def replica_urls() -> list[str]:
    """The libpq URLs of the streaming replicas, in the order of DATABASE_REPLICA_URLS. They are not validated."""
    # A URL may contain commas between several hosts; `replica_parts` rejects such a URL.
    return [url.strip() for url in re.split(r",(?=\s*postgres)", env.read()["DATABASE_REPLICA_URLS"]) if url.strip()]


def replica_parts() -> list[dict[str, str]]:
    """The connection parameters of each replica, by libpq's names.

    Raises `ConfigurationError` if a URL is invalid or names several servers.
    """
    replicas = [_parse(url, "DATABASE_REPLICA_URLS") for url in replica_urls()]
    for named in replicas:
        # The position of one server could be checked, and the rows read from another one that is behind.
        if "," in named.get("host", "") + named.get("hostaddr", ""):
            raise ConfigurationError(
                "DATABASE_REPLICA_URLS must name one server in each URL; give each server a URL of its own"
            )
    return replicas


def replica_settings() -> dict[str, dict[str, Any]]:
    """The entries of `DATABASES` for the replicas, by alias: `replica_1`, `replica_2` and so on.

    Raises `ConfigurationError` if a URL is invalid or names several servers.
    """
    mirror = {"TEST": {"MIRROR": "default"}}
    return {f"replica_{number}": _settings(named) | mirror for number, named in enumerate(replica_parts(), 1)}


def account() -> str:
    """The name of the account that runs this process, which libpq takes as the user if none is given.

    Raises `ConfigurationError` if it has no name, as in some containers.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise ConfigurationError(
            f"DATABASE_URL must name a user, because the user id {os.getuid()} has no name"
        ) from error


def _settings(named: dict[str, str]) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        # Without a database name, libpq uses the user's name.
        "NAME": named.pop("dbname", None) or named.get("user") or account(),
        "USER": named.pop("user", ""),
        "PASSWORD": named.pop("password", ""),
        "HOST": named.pop("host", ""),
        "PORT": named.pop("port", ""),
        "OPTIONS": {
            "connect_timeout": env.read()["CDB_CONNECT_TIMEOUT_SECONDS"],
            "fallback_application_name": _application_name(),
        }
        | TCP_TIMEOUTS
        | named,
        # Each thread keeps its connection open for later requests, and Django checks it before it is used again.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
    }


@contextlib.contextmanager
def available(options: dict[str, str] | None = None) -> Iterator[None]:
    """Make the database available inside the block: check it, after starting the embedded server if that is used.

    The embedded server is started unless it runs, with `options`, PostgreSQL's settings by name. At the end of the
    block it is stopped unless another process uses it; SIGINT and SIGTERM are ignored meanwhile. So this must be called
    in the main thread. Blocks must not be nested.

    Raises `ConfigurationError`, with a message of one line, if the server can't be started or stopped, or if the
    database can't be reached or was created with another CDB_IOV_MODE.
    """
    server = embedded(options)
    if server is None:
        check()
        yield
        return
    global _in_use
    try:
        # Inside, so that a signal at its end does not leave the server running.
        server.acquire()
        _in_use = server
        check()
        yield
    finally:
        # A second Ctrl-C must not leave the server running.
        previous = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            server.release()
        finally:
            _in_use = None
            for number, handler in previous.items():
                signal.signal(number, handler)


def _application_name() -> str:
    """The default application name of connections: cdb-COMMAND for a command of manage.py, otherwise cdb."""
    is_command = Path(sys.argv[0]).name == "manage.py" and len(sys.argv) > 1
    return f"cdb-{sys.argv[1]}" if is_command else "cdb"


def _parse(database_url: str, variable: str = "DATABASE_URL") -> dict[str, str]:
    if not database_url.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError(f"{variable} must look like postgresql://user:password@host:5432/database")
    try:
        return parse_dsn(database_url)
    except psycopg2.ProgrammingError as error:
        # Only the part of libpq's message before a quotation, which may contain a part of the password.
        reason = str(error).removeprefix("invalid dsn: ").split('"')[0].strip(" :\n")
        raise ConfigurationError(f"{variable} is not valid: {reason} (special characters are written %XX)") from error


def check() -> None:
    """Raise `ConfigurationError` if the database can't be reached, or was created with another CDB_IOV_MODE."""
    named = parts()
    try:
        check_mode()
    except psycopg2.OperationalError as error:
        where = f"{named.get('host', 'localhost')}:{named.get('port', '5432')}/{named.get('dbname', '')}"
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"can't reach the database at {where} (DATABASE_URL): {reason}") from error


def check_mode() -> None:
    """Raise `ConfigurationError` if the database was created with another CDB_IOV_MODE.

    A database without tables has no mode, and is accepted. Raises `psycopg2.OperationalError` if the database can't be
    reached.
    """
    connect_timeout = {"connect_timeout": env.read()["CDB_CONNECT_TIMEOUT_SECONDS"]}
    with contextlib.closing(psycopg2.connect(**connect_timeout | parts())) as connection:
        conflict = iov_mode.conflict(iov_mode.recorded(connection.cursor()), env.read()["CDB_IOV_MODE"])
    if conflict:
        raise ConfigurationError(conflict)
