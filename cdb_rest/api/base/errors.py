"""Error responses, and the exception handlers that make them."""

import logging
import sys
import traceback
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from rest_framework import exceptions

from cdb_rest.api.base.json import TooComplexError, dump
from cdb_rest.api.base.suggestions import nearest_route, similar_names
from cdb_rest.http.security import HEADERS
from cdb_rest.observe import metrics
from cdb_rest.rules import errors
from cdb_rest.writes.driver_errors import translate

logger = logging.getLogger(__name__)

# Error codes for exceptions of Django REST framework.
FRAMEWORK_CODES: dict[type[exceptions.APIException], str] = {
    exceptions.ParseError: "invalid_json",
    TooComplexError: "body_too_complex",
    exceptions.MethodNotAllowed: "method_not_allowed",
}

RETRY_AFTER_SECONDS = 5


def handle(error: Exception, context: dict[str, Any]) -> HttpResponse:
    """The response to an exception in a view (`EXCEPTION_HANDLER`), or in a WSGI application of `cdb_rest.wsgi`.

    `context` must have the `request` if the exception comes from Django REST framework. Call it once for each response:
    it counts the error, and logs an unexpected one. With DEBUG, a 500 contains the traceback.
    """
    if isinstance(error, DatabaseError):
        error = translate(error)
    if isinstance(error, errors.CdbError):
        return _domain_error_response(error)
    if isinstance(error, exceptions.UnsupportedMediaType):
        given = context["request"].content_type
        return error_response(
            415, "unsupported_media_type", f"Send the body with Content-Type: application/json, not {given}."
        )
    if isinstance(error, exceptions.APIException) and type(error) in FRAMEWORK_CODES:
        return error_response(error.status_code, FRAMEWORK_CODES[type(error)], str(error.detail))
    logger.error("unexpected %s", type(error).__name__, exc_info=error)
    more = {"traceback": traceback.format_exception(error)} if settings.DEBUG else None
    return error_response(500, "internal_error", "An internal error occurred; it was logged.", more)


def respond(error: Exception) -> tuple[int, dict[str, str], bytes]:
    """The response to an exception in a WSGI application: status, headers and body. Otherwise as `handle`."""
    response = handle(error, {})
    return response.status_code, dict(response.items()) | HEADERS, response.content


def error_response(status: int, code: str, detail: str, more: dict[str, Any] | None = None) -> HttpResponse:
    """An error response: a JSON object with `detail`, `code` and the members of `more`.

    `more` may have the names of unknown members of a body, but never replaces `detail` and `code`. Call it once for each
    response, because it counts the error.
    """
    metrics.ERRORS.labels(code).inc()
    # A message may quote text of the client that UTF-8 cannot encode, such as half of a surrogate pair.
    fixed = {"detail": detail.encode(errors="replace").decode(), "code": code}
    body = dump(fixed | (more or {}) | fixed)
    response = HttpResponse(body, status=status, content_type="application/json")
    response["Cache-Control"] = "no-store"
    if status == 504:
        response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    # Django would log another, less precise line.
    response._has_been_logged = True  # type: ignore[attr-defined]  # the types lack it
    return response


def _domain_error_response(error: errors.CdbError) -> HttpResponse:
    detail = str(error)
    more: dict[str, Any] = {}
    similar = similar_names(error)
    if similar:
        detail = f"{detail.removesuffix('.')}; did you mean {errors.quoted(similar[0])}?"
    if isinstance(error, errors.AuthenticationRequiredError | errors.NotPermittedError):
        detail = f"{detail} Ask {settings.CDB_ACCESS_CONTACT}."
    if isinstance(error, errors.NameTakenError):
        more["name"] = [detail]
    more |= error.fields
    if error.rows:
        more["rows"] = error.rows
    response = error_response(error.status, error.code, detail, more)
    # For the page that shows the error.
    response.error, response.similar = error, similar  # type: ignore[attr-defined]  # attributes of the service
    if response.status_code == 401:
        # An error is named only if there was a token. Source: RFC 6750, section 3.1.
        problem = ', error="invalid_token"' if isinstance(error, errors.InvalidTokenError) else ""
        response["WWW-Authenticate"] = f'Bearer realm="cdb"{problem}'
    if isinstance(error, errors.PinnedWriteError):
        response["Allow"] = "GET, HEAD, OPTIONS"
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """`handler400`: the response to requests that Django rejects before any view, such as an unknown host."""
    if isinstance(exception, DisallowedHost):
        host = request.META.get("HTTP_HOST", "")
        return error_response(400, "bad_request", f"The host name {host} is not one of this service.")
    return error_response(400, "bad_request", "The request was refused, because it is malformed.")


def server_error(request: HttpRequest) -> HttpResponse:
    """`handler500`: the response to an exception in middleware or in a view without Django REST framework.

    Errors of the database become those of the API, such as 504.
    """
    error = sys.exception()
    if isinstance(error, DatabaseError):
        return handle(error, {})
    response = error_response(500, "internal_error", "An internal error occurred; it was logged.")
    # Django logs the exception.
    response._has_been_logged = False  # type: ignore[attr-defined]  # the types lack it
    return response


def route_not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """`handler404`: the response to an unknown path."""
    route = nearest_route(request.path)
    hint = f"; did you mean {route}?" if route else "."
    return error_response(404, "route_not_found", f"There is nothing at {errors.quoted(request.path)}{hint}")
