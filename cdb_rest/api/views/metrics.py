"""What Prometheus asks for."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from cdb_rest.collectors import exposition


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The service's metrics, of all its processes."""
    return HttpResponse(exposition.text(), content_type=CONTENT_TYPE_LATEST)
