"""Warnings at the start if the database, or a replica, allows fewer connections than the service may open.

The limit of each server is compared separately with the number of connections that the service may open to it. For a
server that cannot be reached there is no warning. Each warning is a line that begins with "Warning:". Without a warning
the problem would only appear under load, when requests get 504.
"""

import contextlib
import math
from collections.abc import Iterator

import psycopg2
import psycopg2.extensions

from cdb import database, env
from cdb.serving.pools import pools
from cdb_rest import named_sql

LIMITS = named_sql.load("connection_limits")
POOLS = named_sql.load("pgbouncer_databases")
# The name of PgBouncer's admin database.
CONSOLE = "pgbouncer"


def warnings_of_serve() -> list[str]:
    """The warnings for `make serve`, each of whose pools opens at most `most_connections` to each server."""
    each = pools().values()
    who = f"during a deployment, the pools ({', '.join(f'{pool.name} {pool.most_connections}' for pool in each)})"
    return list(_warnings(sum(pool.most_connections for pool in each), who))


def warnings_of_gunicorn(workers: int, threads: int) -> list[str]:
    """The warnings for gunicorn without PgBouncer, each thread of which may open a connection to each database."""
    return list(_warnings(workers * threads, f"gunicorn's {workers} processes x {threads} threads"))


def _warnings(wanted: int, who: str) -> Iterator[str]:
    named = {"DATABASE_URL": database.parts()}
    named |= {
        f"replica {number} of DATABASE_REPLICA_URLS": parts for number, parts in enumerate(database.replica_parts(), 1)
    }
    for name, parts in named.items():
        try:
            accepted, reason, remedy = _accepted(parts)
        except psycopg2.Error:
            # A database that is down is reported elsewhere, and may be available again by the first request.
            continue
        if wanted > accepted:
            yield (
                f"Warning: {who} may open {wanted} connections, but {name} allows {accepted} ({reason}); under load, requests "
                f"will wait for a connection and get 504. Lower CDB_WORKERS or CDB_THREADS, or raise {remedy} by "
                f"{wanted - accepted} or more."
            )


def _accepted(parts: dict[str, str]) -> tuple[float, str, str]:
    """The number of connections that a database allows, the limit that decides it, and the setting to raise."""
    with _connected(parts) as connection, connection.cursor() as cursor:
        cursor.execute(LIMITS)
        [(most, reserved, of_role, of_database, process)] = cursor.fetchall()
        # The process id differs if there is PgBouncer in between. Then only its pool size counts for the service.
        if connection.get_backend_pid() != process:
            size = _pool_size(parts)
            return size, f"PgBouncer's pool_size {size}", "pool_size"
    limits = [(most - reserved, f"max_connections {most}, less {reserved} reserved", "max_connections")]
    limits += [(of_role, "CONNECTION LIMIT of the role", "it")] if of_role >= 0 else []
    limits += [(of_database, "CONNECTION LIMIT of the database", "it")] if of_database >= 0 else []
    return min(limits)


def _pool_size(parts: dict[str, str]) -> float:
    """PgBouncer's pool_size for this database; infinite if it can't be determined."""
    try:
        with _connected(parts | {"dbname": CONSOLE}) as connection, connection.cursor() as cursor:
            cursor.execute(POOLS)
            columns = [column.name for column in cursor.description or ()]
            found = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    except psycopg2.Error:
        return math.inf
    return next((int(row["pool_size"]) for row in found if row["name"] == parts.get("dbname")), math.inf)


@contextlib.contextmanager
def _connected(parts: dict[str, str]) -> Iterator[psycopg2.extensions.connection]:
    """A new connection for the block, in autocommit mode, independent of Django's connections."""
    limit = {"connect_timeout": env.read()["CDB_CONNECT_TIMEOUT_SECONDS"]}
    with contextlib.closing(psycopg2.connect(**limit | parts)) as connection:
        connection.autocommit = True
        yield connection
