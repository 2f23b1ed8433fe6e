"""Middleware for every request: limits on bodies, no NUL bytes, errors as JSON, HEAD, preconditions, security headers.

Requests for /metrics are handled before the Host header is checked.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from cdb_rest.api.errors import error_response, handle
from cdb_rest.api.views.monitoring import metrics
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.http.caching import fails_precondition
from cdb_rest.http.security import HEADERS, PAGE_HEADERS, POLICY, is_cross_site_write
from cdb_rest.parsing.unknown_names import NAMED, NAMED_LENGTH


class EdgeMiddleware:
    """Reject invalid requests, and complete every response.

    Errors become JSON. A request whose precondition fails gets 412. A response gets its Content-Length, and none to HEAD has
    a body. A response without `Cache-Control` gets `no-store`, so that no cache stores it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = _as_json(self._reject(request) or self.get_response(request))
        if fails_precondition(request, response):
            response.close()
            response = error_response(
                412, "precondition_failed", "The condition in If-Match or If-Unmodified-Since does not hold."
            )
        response.headers.setdefault("Cache-Control", "no-store")
        if response.status_code == 304:
            # Django would set 0, which a cache could take for the length of its stored response.
            del response.headers["Content-Length"]
        elif not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        if request.method == "HEAD":
            response = _without_body(response)
        return response

    @staticmethod
    def process_view(
        request: HttpRequest, view: Callable[..., HttpResponse], *_arguments: Any, **_named: Any
    ) -> HttpResponse | None:
        """The error response for a repeated query parameter that the view does not accept, if it is one of Django REST framework.

        Of the repeated values, only one would count otherwise.
        """
        view_class = getattr(view, "cls", None)
        if view_class is None:
            return None
        accepted = getattr(view_class, "repeatable", ())
        names = [name for name, values in request.GET.lists() if len(values) > 1 and name not in accepted]
        if not names:
            return None
        messages = {name[:NAMED_LENGTH]: ["This parameter must be given only once."] for name in names[:NAMED]}
        return handle(InvalidInputError(f"{', '.join(messages)} must be given only once.", messages), {})

    @staticmethod
    def _reject(request: HttpRequest) -> HttpResponse | None:
        """The error response for a request that is rejected here, or None."""
        if "\x00" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
            # PostgreSQL's type text cannot store NUL.
            return error_response(400, "invalid_input", "The URL must not contain a NUL byte.")
        if is_cross_site_write(request):
            return error_response(
                403,
                "cross_site_request",
                f"Writes from pages of another site are not accepted (Origin: {request.headers.get('Origin', 'none')}).",
            )
        if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            return error_response(
                400, "length_required", "Send the body with a Content-Length; chunked bodies are not accepted."
            )
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal():
            return error_response(400, "length_required", f"Content-Length must be a number (got {length}).")
        if int(length) and request.META.get("HTTP_CONTENT_ENCODING", "").lower() not in ("", "identity"):
            return error_response(
                415,
                "unsupported_media_type",
                "Content-Encoding must be absent or identity; compressed bodies are not accepted.",
            )
        if int(length) > settings.CDB_MAX_BODY_BYTES:
            limit = f"{settings.CDB_MAX_BODY_BYTES} bytes"
            return error_response(413, "body_too_large", f"The body has {length} bytes; at most {limit} are accepted.")
        return None


class SecurityHeadersMiddleware:
    """Set the security headers of all responses of Django.

    With DEBUG, HTML pages get no `Content-Security-Policy`, because the pages for developers have inline scripts.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._page_headers = dict(PAGE_HEADERS)
        if settings.DEBUG:
            del self._page_headers[POLICY]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        is_page = response.get("Content-Type", "").startswith("text/html")
        for name, value in (self._page_headers if is_page else HEADERS).items():
            # A page may have a stricter policy of its own.
            response.headers.setdefault(name, value)
        return response


class MetricsMiddleware:
    """Respond to /metrics for any Host header.

    Prometheus uses IP addresses, which CDB_ALLOWED_HOSTS does not contain. The response does not depend on the host.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return metrics(request) if request.path_info == "/metrics" else self.get_response(request)


def _as_json(response: HttpResponse) -> HttpResponse:
    """The response, or a JSON response with the same status if it is an error in another format.

    A page for persons, whose view sets `is_page`, stays as it is.
    """
    is_kept = response.status_code < 400 or getattr(response, "is_page", False)
    if is_kept or response.get("Content-Type", "").startswith("application/json"):
        return response
    error = error_response(response.status_code, "refused", f"The request was refused: {response.reason_phrase}.")
    if "Allow" in response:
        error["Allow"] = response["Allow"]
    return error


def _without_body(response: HttpResponse) -> HttpResponse:
    """The response to HEAD: the same status and headers without a body."""
    if response.streaming:
        response.close()
        return HttpResponse(status=response.status_code, headers=dict(response.items()))
    response.content = b""
    return response
