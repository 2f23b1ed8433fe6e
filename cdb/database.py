"""The PostgreSQL server that the service uses: that of DATABASE_URL, or the embedded one.

All functions except `in_use` raise `ConfigurationError` if an environment variable is invalid.
"""

import contextlib
import getpass
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2.extensions import parse_dsn

from cdb import env
from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ConfigurationError
from cdb_rest.connections.database_check import objection

CONNECT_TIMEOUT_SECONDS = 5
# For each host, if another host can be used instead.
CONNECT_TIMEOUT_OF_SEVERAL_SECONDS = 2
# A connection whose network is down fails after 20 to 25 s, both while idle and during a statement.
TCP_TIMEOUTS = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}


def embedded() -> EmbeddedPostgres | None:
    """A new object for the embedded server, which it does not start; None if DATABASE_URL is set."""
    values = env.read()
    return None if values["DATABASE_URL"] else EmbeddedPostgres(values["CDB_DATA_DIR"] / "postgres")


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


def replica_settings() -> dict[str, dict[str, Any]]:
    """The entries of `DATABASES` for the streaming replicas, by alias: `replica_1`, `replica_2` and so on.

    Raises `ConfigurationError` if a URL in DATABASE_REPLICA_URLS is invalid or names several servers.
    """
    found = {}
    # A URL may contain commas between several hosts.
    urls = re.split(r",(?=\s*postgres)", env.read()["DATABASE_REPLICA_URLS"])
    for number, url in enumerate((url.strip() for url in urls if url.strip()), 1):
        named = _parse(url, "DATABASE_REPLICA_URLS")
        # The position of one server could be checked, and the rows read from another one that is behind.
        if _has_several_hosts(named):
            raise ConfigurationError(
                "DATABASE_REPLICA_URLS must name one server in each URL; give each server a URL of its own"
            )
        # A shorter timeout than for the primary, because the primary can be used instead.
        named = {"connect_timeout": str(CONNECT_TIMEOUT_OF_SEVERAL_SECONDS)} | named
        found[f"replica_{number}"] = _settings(named) | {"TEST": {"MIRROR": "default"}}
    return found


def _has_several_hosts(named: dict[str, Any]) -> bool:
    return "," in named.get("host", "") + named.get("hostaddr", "")


def _with_timeout(named: dict[str, Any]) -> dict[str, Any]:
    """The connection parameters, with a timeout unless they have one."""
    seconds = CONNECT_TIMEOUT_OF_SEVERAL_SECONDS if _has_several_hosts(named) else CONNECT_TIMEOUT_SECONDS
    return {"connect_timeout": seconds} | named


def _settings(named: dict[str, Any]) -> dict[str, Any]:
    named = _with_timeout(named)
    return {
        "ENGINE": "django.db.backends.postgresql",
        # Without a database name, libpq uses the user's name.
        "NAME": named.pop("dbname", None) or named.get("user") or getpass.getuser(),
        "USER": named.pop("user", ""),
        "PASSWORD": named.pop("password", ""),
        "HOST": named.pop("host", ""),
        "PORT": named.pop("port", ""),
        "OPTIONS": {
            "fallback_application_name": _application_name(),
        }
        | TCP_TIMEOUTS
        | named,
        # Each thread keeps its connection open for later requests, and Django checks it before it is used again.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
    }


@contextlib.contextmanager
def available(service: str = "") -> Iterator[None]:
    """Make the database available inside the block: check it, after starting the embedded server if that is used.

    `service` is the name of a service, which runs the embedded server itself (`EmbeddedPostgres.acquire`). Blocks must not be
    nested. Raises `ConfigurationError`, with a message of one line, if the server can't be started or stopped, or if the
    database can't be used (`check`).
    """
    global _in_use
    _in_use = server = embedded()
    if server:
        server.acquire(service)
    try:
        check()
        yield
    finally:
        _in_use = None
        if server:
            server.release()


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
    """Raise `ConfigurationError` if the database can't be reached, is on a standby, or was created with another CDB_IOV_MODE.

    A database without tables has no mode, and is accepted.
    """
    named = _with_timeout(parts())
    try:
        with contextlib.closing(psycopg2.connect(**named)) as connection:
            connection.autocommit = True
            message = objection(connection.cursor(), env.read()["CDB_IOV_MODE"])
    except psycopg2.OperationalError as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"can't reach the database at {_place(named)} (DATABASE_URL): {reason}") from error
    if message:
        raise ConfigurationError(message)


def _place(named: dict[str, Any]) -> str:
    """The hosts of these connection parameters with their ports, and the database, for messages."""
    hosts = named.get("host", "localhost").split(",")
    ports = named.get("port", "5432").split(",")
    # One port may stand for all hosts.
    pairs = zip(hosts, ports if len(ports) == len(hosts) else ports * len(hosts), strict=False)
    return f"{', '.join(f'{host}:{port}' for host, port in pairs)}/{named.get('dbname', '')}"
