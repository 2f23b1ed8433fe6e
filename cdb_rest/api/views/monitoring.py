"""Health checks and metrics: /health/live, /health/ready and /metrics."""

import time
from functools import cache

from django.db import Error, ProgrammingError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from cdb_rest.api import exposition
from cdb_rest.api.errors import error_response

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
    """The metrics of all processes of the service on this host, in the text format of Prometheus."""
    return HttpResponse(exposition.text(), content_type=CONTENT_TYPE_LATEST)


@cache
def _known_migrations() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
