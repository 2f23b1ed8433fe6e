"""The response to a Prometheus scrape: the metrics of all processes, and figures of the global tags from the database."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import Error, connection, transaction
from prometheus_client import REGISTRY, CollectorRegistry, Metric, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from cdb_rest import named_sql

logger = logging.getLogger(__name__)

COUNT, GLOBAL_TAGS, LIMIT = (
    named_sql.load(name) for name in ("count_global_tags", "metrics_global_tags", "limit_statement")
)
TIMEOUT_SECONDS = 2


class TagCollector(Collector):
    """Whether the database responds, and figures of the `CDB_METRICS_MAX_TAGS` tags that changed last."""

    def collect(self) -> Iterator[Metric]:
        """The metrics; only `cdb_database_up` if the database does not respond."""
        try:
            found = self._read()
        except Error as error:
            logger.debug("reading the metrics of global tags failed: %s", error)
            found = []
        yield GaugeMetricFamily("cdb_database_up", "1 if the database responded to the scrape.", int(bool(found)))
        yield from found

    @staticmethod
    def _read() -> list[Metric]:
        names = ["global_tag"]
        revision = GaugeMetricFamily("cdb_global_tag_revision", "Revision of a global tag.", labels=names)
        status = GaugeMetricFamily(
            "cdb_global_tag_status", "1 for the status of the global tag.", labels=[*names, "status"]
        )
        lists = GaugeMetricFamily("cdb_global_tag_payload_lists", "Payload lists of the global tag.", labels=names)
        iovs = GaugeMetricFamily("cdb_global_tag_payload_iovs", "Payload IOVs of the global tag.", labels=names)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(LIMIT, {"statement": str(1000 * TIMEOUT_SECONDS)})
            cursor.execute(COUNT)
            [(total,)] = cursor.fetchall()
            cursor.execute(GLOBAL_TAGS, {"most": settings.CDB_METRICS_MAX_TAGS})
            for name, its_status, its_revision, its_lists, its_iovs in cursor.fetchall():
                status.add_metric([name, its_status], 1)
                for family, figure in ((revision, its_revision), (lists, its_lists), (iovs, its_iovs)):
                    family.add_metric([name], figure)
        return [GaugeMetricFamily("cdb_global_tags", "Number of global tags.", total), revision, status, lists, iovs]


def text() -> bytes:
    """All metrics in the text format of Prometheus: of all processes that share PROMETHEUS_MULTIPROC_DIR, or of this one."""
    directory = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(TagCollector())
    if not directory:
        return generate_latest(REGISTRY) + generate_latest(registry)
    for process in {int(file.stem.rpartition("_")[2]) for file in Path(directory).glob("gauge_live*.db")}:
        if not Path(f"/proc/{process}").exists():
            # The gauges of a process that has ended; its counts remain.
            multiprocess.mark_process_dead(process, directory)
    multiprocess.MultiProcessCollector(registry, directory)
    return generate_latest(registry)
