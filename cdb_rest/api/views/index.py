"""The entry points: the parts of the service, the index of the API, and the favicon."""

from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from rest_framework.request import Request
from rest_framework.response import Response

import cdb_rest
from cdb_rest.api.inputs import StrictView

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
