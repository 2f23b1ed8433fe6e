"""Settings: the part of the configuration that clients may read. Also here: entry points, health checks and metrics."""

import logging
import os
import time
from collections.abc import Iterator
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import Error, ProgrammingError, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Metric, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

import cdb_rest
from cdb_rest import named_sql
from cdb_rest.access.authentication import principal_of
from cdb_rest.api.base.descriptions import in_path, response_example
from cdb_rest.api.base.errors import error_response, handle, route_not_found
from cdb_rest.api.base.views import StrictView, respond_hot
from cdb_rest.routes import Hot
from cdb_rest.rules.access import Role
from cdb_rest.rules.errors import CdbError


class PublicSettingView(APIView):
    """An object with the value of the setting, or with its default."""

    @extend_schema(
        summary="Get a setting",
        parameters=[in_path("name", "Name of the setting, such as CDB_PAYLOAD_BASE_URL.", "CDB_IOV_MODE")],
        responses={200: {"type": "object", "additionalProperties": {}}},
        examples=[response_example({"CDB_IOV_MODE": "continuous"})],
    )
    def get(self, request: Request, name: str) -> HttpResponse:
        return respond_hot(request, Hot.SETTING, name)


API = "/api/cdb_rest/"
DESCRIPTION = {"docs": "/api/docs/", "schema": "/api/schema/"}
SERVICE = {"service": "cdb", "api": API, **DESCRIPTION, "health": "/health/ready"}
INDEX = {
    "lookup": f"{API}payload-iovs/query/?gtName={{gtName}}&majorIOV={{majorIOV}}&minorIOV={{minorIOV}}",
    "global_tags": f"{API}global-tags",
    "payload_types": f"{API}payload-types",
    **DESCRIPTION,
}
ICON = (Path(cdb_rest.__file__).parent / "static/cdb_rest/favicon.ico").read_bytes()


class IndexView(StrictView):
    """Links into the API. The link to the lookup is a template, whose names in braces are replaced by the client."""

    def get(self, request: Request) -> Response:
        return Response(INDEX)


@require_safe
@cache_control(public=True, max_age=24 * 3600)
def favicon(request: HttpRequest) -> HttpResponse:
    """The icon, at the path where browsers look for it."""
    return HttpResponse(ICON, content_type="image/x-icon")


def prefers_html(request: HttpRequest) -> bool:
    """Whether the Accept header prefers HTML to JSON, as that of a browser does."""
    return request.get_preferred_type(["application/json", "text/html"]) == "text/html"


# When this process loaded the code, in seconds since 1970. `make reload` waits for a later one.
STARTED = time.time()


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """Always 200: it shows that the process handles requests. It does not use the database."""
    return JsonResponse({"status": "live"}, headers={"CDB-Started": f"{STARTED:.3f}"})


@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """200 if the database responds and has all migrations of this version, else 503.

    The database may have further migrations.
    """
    try:
        applied = set(MigrationRecorder(connection).migration_qs.values_list("app", "name"))
    except ProgrammingError:
        applied = set()  # not even the table of migrations exists
    except Error:
        return error_response(503, "database_unavailable", "The database cannot be reached.")
    missing = sorted(".".join(key) for key in _known_migrations() - applied)
    if missing:
        return error_response(503, "migrations_missing", f"The database lacks {', '.join(missing)}.")
    return JsonResponse({"status": "ready"})


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics of all processes of the service on this host, in the text format of Prometheus.

    They are for clients of this machine and of `CDB_METRICS_NETWORKS` that connect without a proxy. If reads are closed, they
    are also for clients with the role reader; otherwise others get 404. Raises `django.db.Error`.
    """
    if not _is_near(request.META):
        if settings.CDB_ANONYMOUS_READS:
            return route_not_found(request)
        try:
            principal_of(request.META).require(Role.READER)
        except CdbError as error:
            return handle(error, {})
    return HttpResponse(metrics_text(), content_type=CONTENT_TYPE_LATEST)


def _is_near(environ: dict[str, Any]) -> bool:
    """Whether the client has connected from this machine or from `CDB_METRICS_NETWORKS`, without a proxy.

    Only our nginx connects to a Unix socket. It omits X-Forwarded-For in requests for the metrics of such clients.
    """
    if "HTTP_X_FORWARDED_FOR" in environ or "HTTP_FORWARDED" in environ:
        return False
    if not environ.get("REMOTE_ADDR"):
        return True
    try:
        address = ip_address(environ["REMOTE_ADDR"])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or any(address in network for network in settings.CDB_METRICS_NETWORKS)


@cache
def _known_migrations() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


logger = logging.getLogger(__name__)

COUNT, GLOBAL_TAGS, SUBSCRIPTIONS, LIMIT = (
    named_sql.load(name)
    for name in ("count_global_tags", "metrics_global_tags", "metrics_subscriptions", "limit_statement")
)
TIMEOUT_SECONDS = 2


class TagCollector(Collector):
    """Whether the database responds, and figures of subscriptions and of the `CDB_METRICS_MAX_TAGS` tags that changed last."""

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
        states = GaugeMetricFamily("cdb_subscriptions", "Subscriptions by state.", labels=["state"])
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(LIMIT, {"statement": str(1000 * TIMEOUT_SECONDS)})
            cursor.execute(SUBSCRIPTIONS)
            [(*counts, age)] = cursor.fetchall()
            for state, count in zip(("working", "failing", "stopped"), counts, strict=True):
                states.add_metric([state], count)
            cursor.execute(COUNT)
            [(total,)] = cursor.fetchall()
            cursor.execute(GLOBAL_TAGS, {"most": settings.CDB_METRICS_MAX_TAGS})
            for name, its_status, its_revision, its_lists, its_iovs in cursor.fetchall():
                status.add_metric([name, its_status], 1)
                for family, figure in ((revision, its_revision), (lists, its_lists), (iovs, its_iovs)):
                    family.add_metric([name], figure)
        total_and_age = [
            GaugeMetricFamily("cdb_global_tags", "Number of global tags.", total),
            GaugeMetricFamily("cdb_notice_age_seconds", "Age of the oldest change that a subscription waits for.", age),
        ]
        return [*total_and_age, states, revision, status, lists, iovs]


def metrics_text() -> bytes:
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
