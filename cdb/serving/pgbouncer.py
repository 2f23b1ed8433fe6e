"""PgBouncer, the connection pooler: its configuration and its process."""

import os
import signal
import subprocess
from collections.abc import Iterator

import psycopg2

from cdb import database, env
from cdb.embedded import postgres_binaries
from cdb.env import ConfigurationError
from cdb.processes import child
from cdb.serving import layout, templates
from cdb.serving.pools import Pool, pools
from cdb.serving.program import Program, append_to, find

CONFIGURATION = "pgbouncer.ini"
LOG = "pgbouncer.log"
# Only a part of the socket's file name; PgBouncer uses no TCP port here.
PORT = "6432"
# The parameters of a libpq URL that PgBouncer supports: for each database, or as a setting for all databases.
DATABASE_PARAMETERS = ("host", "port", "user", "password")
GLOBAL_PARAMETERS = {
    "sslrootcert": "server_tls_ca_file",
    "sslcert": "server_tls_cert_file",
    "sslkey": "server_tls_key_file",
}
SUPPORTED_PARAMETERS = {
    *DATABASE_PARAMETERS,
    *GLOBAL_PARAMETERS,
    "dbname",
    "sslmode",
    "connect_timeout",
    "application_name",
}


def url(pool: Pool) -> str:
    """The libpq URL with which a gunicorn instance connects to the database, through PgBouncer if the pool uses it."""
    return _url(pool, pool.database) if pool.uses_pgbouncer else _named(database.url(), pool)


def replica_urls(pool: Pool) -> list[str]:
    """The libpq URLs with which a gunicorn instance connects to each streaming replica, as `url`."""
    if not pool.uses_pgbouncer:
        return [_named(target, pool) for target in database.replica_urls()]
    return [_url(pool, pool.database_on_replica(number)) for number, _ in enumerate(database.replica_urls(), 1)]


def _url(pool: Pool, name: str) -> str:
    return _named(f"postgresql://cdb@/{name}?host={layout.pooler_sockets()}&port={PORT}", pool)


def _named(target: str, pool: Pool) -> str:
    """A libpq URL with the application name of a pool; the last one of several parameters with the same name is used."""
    return f"{target}{'&' if '?' in target else '?'}application_name=cdb-{pool.name}"


def console_url() -> str:
    """The libpq URL of PgBouncer's admin console, which has the statistics of its pools."""
    return f"postgresql://cdb@/pgbouncer?host={layout.pooler_sockets()}&port={PORT}"


def configuration(placeholders: dict[str, object] | None = None, sizes: dict[str, Pool] | None = None) -> str:
    """The text of pgbouncer.ini for the settings.

    `placeholders` are the values for its directory, addresses and authentication, by default those of `make
    serve`. `sizes` are the pools by name, by default those of this machine. Raises `ConfigurationError` if a
    database URL is invalid or has parameters that PgBouncer does not support, or if the TLS parameters of a
    replica differ from those of the primary.
    """
    sizes = sizes or pools()
    target = _target(database.parts(), "DATABASE_URL")
    return templates.fill(
        CONFIGURATION,
        {
            "DATABASES": "\n".join(_database(pool, target) for pool in sizes.values()),
            "REPLICAS": "\n".join(_replicas(target, sizes)),
            "TLS": _tls(target),
            "CONNECT_TIMEOUT": min(3, env.read()["CDB_CONNECT_TIMEOUT_SECONDS"]),
        }
        | (placeholders or {"DIRECTORY": layout.pooler_sockets(), "LISTEN": "", "AUTHENTICATION": "auth_type = any"}),
    )


def write_configuration() -> None:
    """Write pgbouncer.ini, readable only by PgBouncer's account, because it may contain a password.

    Raises `ConfigurationError` as `configuration` does.
    """
    account = postgres_binaries.account()
    owner = (account.pw_uid, account.pw_gid) if account else None
    templates.write(layout.directory() / CONFIGURATION, configuration(), owner)


def _target(parts: dict[str, str], variable: str) -> dict[str, str]:
    unknown = sorted(set(parts) - SUPPORTED_PARAMETERS)
    if unknown:
        raise ConfigurationError(
            f"{variable} has parameters that PgBouncer does not support: {', '.join(unknown)}; use make run instead of make serve"
        )
    user = parts.get("user") or database.account()
    return {"dbname": user} | parts | {"user": user}


def _replicas(primary: dict[str, str], sizes: dict[str, Pool]) -> Iterator[str]:
    for number, parts in enumerate(database.replica_parts(), 1):
        target = _target(parts, "DATABASE_REPLICA_URLS")
        if _tls(target) != _tls(primary):
            raise ConfigurationError(
                "make serve: PgBouncer needs the same TLS parameters for all replicas and DATABASE_URL"
            )
        for pool in sizes.values():
            yield _database(pool, target, pool.database_on_replica(number))


def _tls(target: dict[str, str]) -> str:
    certificates = (f"{GLOBAL_PARAMETERS[name]} = {target[name]}" for name in GLOBAL_PARAMETERS if name in target)
    return "\n".join([f"server_tls_sslmode = {target.get('sslmode', 'prefer')}", *certificates])


def _database(pool: Pool, target: dict[str, str], name: str = "") -> str:
    parts = [f"{name}={_quote(target[name])}" for name in DATABASE_PARAMETERS if name in target]
    parts += [
        f"dbname={_quote(target['dbname'])}",
        f"pool_size={pool.connections}",
        f"connect_query={_quote(_session_limits())}",
    ]
    return f"{name or pool.database} = {' '.join(parts)}"


def _session_limits() -> str:
    """The SQL that sets the timeouts of a session. A transaction with longer statements sets its own timeout."""
    values = env.read()
    return (
        f"SET statement_timeout = '{values['CDB_LOOKUP_TIMEOUT_SECONDS']}s';"
        f" SET lock_timeout = '{values['CDB_LOCK_TIMEOUT_SECONDS']}s'"
    )


def _quote(value: str) -> str:
    return "'{}'".format(value.replace("'", "''"))


class PgBouncer(Program):
    """PgBouncer on a Unix socket.

    Like PostgreSQL it refuses to run as root, so root runs it with the account of the embedded PostgreSQL.
    """

    name = "PgBouncer"
    # It is stopped last, when no client is connected, so it can stop immediately.
    immediate_signal = signal.SIGTERM

    def _start_process(self) -> child.Child:
        account = postgres_binaries.account()
        with os.fdopen(append_to(layout.directory() / LOG), "ab") as log:
            return child.start(
                [find("pgbouncer"), str(layout.directory() / CONFIGURATION)],
                env={"PATH": os.defpath},
                cwd=layout.directory(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
                umask=0o077,
            )

    def wait_until_ready(self) -> None:
        try:
            child.wait_until(self.started, self._accepts_connections, "PgBouncer")
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}; see {layout.directory() / LOG}") from error

    def reload(self) -> None:
        """Load a new configuration, without waiting for that. The connections of clients stay open."""
        self.send(signal.SIGHUP)

    @staticmethod
    def _accepts_connections() -> bool:
        try:
            psycopg2.connect(url(pools()["others"]), connect_timeout=3).close()
        except psycopg2.OperationalError:
            return False
        return True
