"""Errors as pages for browsers. Other clients, the API, the health checks and /metrics get the JSON response."""

import json
from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from cdb_rest.api.base.errors import error_response
from cdb_rest.api.service import prefers_html
from cdb_rest.http.security import PAGE_HEADERS, POLICY
from cdb_rest.rules.errors import GlobalTagNotFoundError, NotFoundError
from cdb_web.page import show

# Where the phrase of the standard is no help.
HEADINGS = {401: "Please log in", 504: "The service is busy, or the database does not respond"}
# For programs, whatever they accept.
JSON_PATHS = ("/api/", "/pin/", "/health/", "/metrics")


class ErrorPageMiddleware:
    """Replace an error response in JSON with a page, if the client is a browser that asks for a page.

    It comes before `EdgeMiddleware`, which rejects requests, in `MIDDLEWARE`, so that those errors become pages, too.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code < 400 or request.path_info.startswith(JSON_PATHS):
            return response
        if response.get("Content-Type") != "application/json" or not prefers_html(request):
            return response
        return _page(request, response)


def csrf_failure(_request: HttpRequest, reason: str = "") -> HttpResponse:
    """The response to a form without its CSRF token (`CSRF_FAILURE_VIEW`)."""
    detail = f"The form was not accepted: {reason} Go back, reload the page, and try again."
    return error_response(403, "refused", detail)


def _page(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    status = response.status_code
    # The body of a response to HEAD is empty.
    body = json.loads(response.content) if response.content else {"detail": "", "code": ""}
    failed = body["code"] == "login_failed"
    values = {
        "status": status,
        "heading": "Login failed" if failed else HEADINGS.get(status) or HTTPStatus(status).phrase,
        "detail": body["detail"],
        "may_log_in": False,
        "login_failed": failed,
    }
    error = getattr(response, "error", None)
    if isinstance(error, NotFoundError) and isinstance(error.name, str) and error.name:
        values |= {"wanted": error.name, "similar": response.similar}  # type: ignore[attr-defined]
        values["is_tag"] = isinstance(error, GlobalTagNotFoundError)
    page = show(request, "error.html", values, status=status)
    for name, value in (PAGE_HEADERS | {POLICY: page[POLICY], "Content-Type": page["Content-Type"]}).items():
        response[name] = value
    response.content = b"" if request.method == "HEAD" else page.content
    response["Content-Length"] = str(len(page.content))
    return response
