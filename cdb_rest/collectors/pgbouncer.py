"""Metrics of PgBouncer, from its admin console."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import psycopg2
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from cdb_rest import named_sql
from cdb_rest.metrics.slots import here

POOLS, STATS, DATABASES = (
    named_sql.load(name) for name in ("pgbouncer_pools", "pgbouncer_stats", "pgbouncer_databases")
)
# The smallest connect_timeout of libpq.
CONNECT_SECONDS = 2
OWN = "pgbouncer"
MICROSECOND = 1e-6
CLIENTS, SERVERS = ("active", "waiting"), ("active", "idle", "used", "tested", "login")


def read() -> list[Metric]:
    """Connections from clients and to PostgreSQL, waiting times and traffic. `here.pooler` must be set.

    Raises `psycopg2.Error` if the connection fails or takes longer than `CONNECT_SECONDS`. Reading has no timeout.
    """
    with closing(psycopg2.connect(here.pooler, connect_timeout=CONNECT_SECONDS)) as console:
        # The console does not support transactions.
        console.autocommit = True
        pools, stats, databases = (_query(console, statement) for statement in (POOLS, STATS, DATABASES))
    return [*_of_pools(pools), *_of_stats(stats), *_of_databases(databases)]


def _query(console: Any, statement: str) -> list[dict[str, Any]]:
    """The rows as dictionaries, without those of PgBouncer's own database."""
    with console.cursor() as cursor:
        cursor.execute(statement)
        names = [column.name for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return [row for row in rows if row.get("database", row.get("name")) != OWN]


def _of_pools(rows: Iterable[dict[str, Any]]) -> list[Metric]:
    clients = GaugeMetricFamily(
        "cdb_pgbouncer_clients", "Connections of gunicorn's threads to PgBouncer.", labels=["database", "state"]
    )
    servers = GaugeMetricFamily(
        "cdb_pgbouncer_servers", "Connections of PgBouncer to PostgreSQL.", labels=["database", "state"]
    )
    waiting = GaugeMetricFamily(
        "cdb_pgbouncer_max_wait_seconds",
        "Longest time that a waiting client has waited, in seconds.",
        labels=["database"],
    )
    for row in rows:
        for state in CLIENTS:
            clients.add_metric([row["database"], state], row[f"cl_{state}"])
        for state in SERVERS:
            servers.add_metric([row["database"], state], row[f"sv_{state}"])
        waiting.add_metric([row["database"]], row["maxwait"] + row["maxwait_us"] * MICROSECOND)
    return [clients, servers, waiting]


def _of_stats(rows: Iterable[dict[str, Any]]) -> list[Metric]:
    transactions = CounterMetricFamily("cdb_pgbouncer_transactions", "Transactions.", labels=["database"])
    queries = CounterMetricFamily("cdb_pgbouncer_query_seconds", "Seconds that statements ran.", labels=["database"])
    waits = CounterMetricFamily("cdb_pgbouncer_wait_seconds", "Seconds that clients waited.", labels=["database"])
    for row in rows:
        transactions.add_metric([row["database"]], row["total_xact_count"])
        queries.add_metric([row["database"]], float(row["total_query_time"]) * MICROSECOND)
        waits.add_metric([row["database"]], float(row["total_wait_time"]) * MICROSECOND)
    return [transactions, queries, waits]


def _of_databases(rows: Iterable[dict[str, Any]]) -> list[Metric]:
    sizes = GaugeMetricFamily(
        "cdb_pgbouncer_pool_size", "Largest number of connections of the pool to PostgreSQL.", labels=["database"]
    )
    for row in rows:
        sizes.add_metric([row["name"]], row["pool_size"])
    return [sizes]
