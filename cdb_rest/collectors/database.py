"""The database: how it is, who is connected, and its global tags. Every statement is O(tags) or better and reads no IOV."""

from typing import Any

from django.conf import settings
from django.db import connection, transaction
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from cdb_rest import named_sql
from cdb_rest.connections.deadlines import hurry

SERVER, CONNECTIONS, STANDBYS, COUNT, GLOBAL_TAGS, LIMIT = (
    named_sql.load(name)
    for name in (
        "metrics_server",
        "metrics_connections",
        "metrics_standbys",
        "count_global_tags",
        "metrics_global_tags",
        "limit_statement",
    )
)
# The least that the driver knows for a connection; its statements have less.
CONNECT_SECONDS = 2
STATEMENT_MILLISECONDS = 1000


def read() -> list[Metric]:
    """The figures, over a connection of its own. Raises `django.db.Error` where the database does not answer in time."""
    try:
        with hurry(CONNECT_SECONDS), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(LIMIT, {"statement": str(STATEMENT_MILLISECONDS)})
            return [*_server(cursor), _connections(cursor), *_standbys(cursor), *_global_tags(cursor)]
    finally:
        # This thread ends.
        connection.close()


def _server(cursor: Any) -> list[Metric]:
    cursor.execute(SERVER)
    [(size, most, oldest, is_standby)] = cursor.fetchall()
    return [
        GaugeMetricFamily("cdb_database_size_bytes", "Size of the database.", size),
        GaugeMetricFamily("cdb_database_max_connections", "Connections that PostgreSQL permits.", most),
        GaugeMetricFamily("cdb_database_oldest_transaction_seconds", "Age of the oldest transaction.", oldest),
        GaugeMetricFamily("cdb_database_is_standby", "1 if the database that is asked is a standby.", int(is_standby)),
        GaugeMetricFamily("cdb_exports_limit", "Exports that may run at a time.", settings.CDB_MAX_EXPORTS),
    ]


def _connections(cursor: Any) -> Metric:
    family = GaugeMetricFamily("cdb_database_connections", "Connections to PostgreSQL.", labels=["state"])
    cursor.execute(CONNECTIONS)
    for state, number in cursor.fetchall():
        family.add_metric([state], number)
    return family


def _standbys(cursor: Any) -> list[Metric]:
    names = ["standby"]
    connected = GaugeMetricFamily("cdb_standbys", "Standbys that stream from the primary, by name.", labels=names)
    seconds = GaugeMetricFamily(
        "cdb_standby_lag_seconds", "How long the last changes took to be there, or take already.", labels=names
    )
    size = GaugeMetricFamily("cdb_standby_lag_bytes", "How much of the log is not replayed there yet.", labels=names)
    cursor.execute(STANDBYS)
    for name, number, lag_seconds, lag_bytes in cursor.fetchall():
        for family, figure in ((connected, number), (seconds, lag_seconds), (size, lag_bytes)):
            family.add_metric([name], figure)
    return [connected, seconds, size]


def _global_tags(cursor: Any) -> list[Metric]:
    names = ["global_tag"]
    revision = GaugeMetricFamily("cdb_global_tag_revision", "Revision of a global tag.", labels=names)
    status = GaugeMetricFamily("cdb_global_tag_status", "1 for the status it has.", labels=[*names, "status"])
    lists = GaugeMetricFamily("cdb_global_tag_payload_lists", "Payload lists in it.", labels=names)
    iovs = GaugeMetricFamily("cdb_global_tag_payload_iovs", "Payload IOVs in it.", labels=names)
    cursor.execute(COUNT)
    [(total,)] = cursor.fetchall()
    cursor.execute(GLOBAL_TAGS, {"most": settings.CDB_METRICS_MAX_TAGS})
    for name, its_status, its_revision, its_lists, its_iovs in cursor.fetchall():
        status.add_metric([name, its_status], 1)
        for family, figure in ((revision, its_revision), (lists, its_lists), (iovs, its_iovs)):
            family.add_metric([name], figure)
    return [GaugeMetricFamily("cdb_global_tags", "Global tags in all.", total), revision, status, lists, iovs]
