"""Metrics of the database: size, connections, standbys and global tags.

The cost of each statement is at most proportional to the number of tags; none reads IOVs.
"""

from typing import Any

from django.conf import settings
from django.db import connection, transaction
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from cdb_rest import named_sql
from cdb_rest.connections.deadlines import database_timeout

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
# The smallest connect_timeout of libpq.
CONNECT_SECONDS = 2
STATEMENT_MILLISECONDS = 1000


def read() -> list[Metric]:
    """The metrics. Those of single tags are only for the `CDB_METRICS_MAX_TAGS` tags that changed last.

    Uses the connection of the calling thread and closes it, so it must run in a thread of its own. Raises
    `django.db.Error` if the connection or a statement fails or takes too long.
    """
    try:
        with database_timeout(CONNECT_SECONDS), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(LIMIT, {"statement": str(STATEMENT_MILLISECONDS)})
            return [*_server(cursor), _connections(cursor), *_standbys(cursor), *_global_tags(cursor)]
    finally:
        # The thread that `exposition` starts for a read ends after it.
        connection.close()


def _server(cursor: Any) -> list[Metric]:
    cursor.execute(SERVER)
    [(size, most, oldest, is_standby, archiving_fails)] = cursor.fetchall()
    return [
        GaugeMetricFamily("cdb_database_size_bytes", "Size of the database.", size),
        GaugeMetricFamily("cdb_database_max_connections", "Connections that PostgreSQL permits.", most),
        GaugeMetricFamily("cdb_database_oldest_transaction_seconds", "Age of the oldest transaction.", oldest),
        GaugeMetricFamily("cdb_database_is_standby", "1 if this database is a standby.", int(is_standby)),
        GaugeMetricFamily(
            "cdb_database_archiving_fails",
            "1 if the last attempt to archive a WAL file failed.",
            int(archiving_fails),
        ),
        GaugeMetricFamily("cdb_exports_limit", "Largest number of concurrent exports.", settings.CDB_MAX_EXPORTS),
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
    seconds = GaugeMetricFamily("cdb_standby_lag_seconds", "Replication lag of the standby in seconds.", labels=names)
    size = GaugeMetricFamily(
        "cdb_standby_lag_bytes", "Bytes of the log that the standby has not replayed yet.", labels=names
    )
    cursor.execute(STANDBYS)
    for name, number, lag_seconds, lag_bytes in cursor.fetchall():
        for family, figure in ((connected, number), (seconds, lag_seconds), (size, lag_bytes)):
            family.add_metric([name], figure)
    return [connected, seconds, size]


def _global_tags(cursor: Any) -> list[Metric]:
    names = ["global_tag"]
    revision = GaugeMetricFamily("cdb_global_tag_revision", "Revision of a global tag.", labels=names)
    status = GaugeMetricFamily(
        "cdb_global_tag_status", "1 for the status of the global tag.", labels=[*names, "status"]
    )
    lists = GaugeMetricFamily("cdb_global_tag_payload_lists", "Payload lists of the global tag.", labels=names)
    iovs = GaugeMetricFamily("cdb_global_tag_payload_iovs", "Payload IOVs of the global tag.", labels=names)
    cursor.execute(COUNT)
    [(total,)] = cursor.fetchall()
    cursor.execute(GLOBAL_TAGS, {"most": settings.CDB_METRICS_MAX_TAGS})
    for name, its_status, its_revision, its_lists, its_iovs in cursor.fetchall():
        status.add_metric([name, its_status], 1)
        for family, figure in ((revision, its_revision), (lists, its_lists), (iovs, its_iovs)):
            family.add_metric([name], figure)
    return [GaugeMetricFamily("cdb_global_tags", "Number of global tags.", total), revision, status, lists, iovs]
