"""The way of Prometheus to its answer."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from cdb_rest.api.views.metrics import metrics


class MetricsMiddleware:
    """Answers Prometheus by whatever name it asks: it goes by addresses, which CDB_ALLOWED_HOSTS does not have, and can't be told
    to give another name. What it gets does not depend on one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return metrics(request) if request.path_info == "/metrics" else self.get_response(request)
