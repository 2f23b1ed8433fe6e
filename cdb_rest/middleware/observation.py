"""Middleware that adds to the request context what only Django knows: route, SQL time and exceptions."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import ResolverMatch, resolve
from django_structlog.middlewares import RequestMiddleware

from cdb_rest.observe.request_context import RequestContext, context_of
from cdb_rest.observe.timing import HEADER, server_timing

# The name of the URL pattern of all paths without a route.
NOT_FOUND = "not_found"
STATIC_FILES = f"/{settings.STATIC_URL.strip('/')}/<file>"
PARAMETER = re.compile(r"\(\?P<(\w+)>[^)]*\)|<(?:\w+:)?(\w+)>")
ANCHORS = re.compile(r"[\^$]|/\?")


@lru_cache(maxsize=1000)
def name_of(pattern: str) -> str:
    """The route of a Django URL pattern: the path with `<name>` for each parameter, without a trailing slash."""
    named = PARAMETER.sub(lambda found: f"<{found[1] or found[2]}>", pattern)
    return f"/{ANCHORS.sub('', named).rstrip('/')}"


class RouteMiddleware:
    """Set the route in the context of each request, including requests that are rejected before URL resolution.

    It is set after the response has been made. It is None for a path without a route.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        match = request.resolver_match or resolve(request.path_info)
        context_of(request.META).route = _route_of(match, request, response)
        return response


def _route_of(match: ResolverMatch, request: HttpRequest, response: HttpResponseBase) -> str | None:
    if match.url_name != NOT_FOUND:
        return name_of(match.route)
    is_file = response.status_code < 400 and request.path_info.startswith(settings.STATIC_URL)
    return STATIC_FILES if is_file else None


class TimingMiddleware:
    """Measure the SQL statements of each request, and add `Server-Timing` to its response.

    For a streamed response the header covers the time until the body starts. The statements of its body are only added
    to the request context.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        context = context_of(request.META)
        with connection.execute_wrapper(context):
            response = self.get_response(request)
        if isinstance(response, StreamingHttpResponse):
            # WSGI has no asynchronous bodies.
            response.streaming_content = _counted(response.streaming_content, context)  # type: ignore[arg-type]
        # With DEBUG, the toolbar has set the header already.
        toolbar = response.headers.get(HEADER)
        response.headers[HEADER] = f"{server_timing(context)}, {toolbar}" if toolbar else server_timing(context)
        return response


def _counted(pieces: Iterable[bytes], context: RequestContext) -> Iterator[bytes]:
    """The pieces of a body. SQL statements that run while they are generated are counted for the request."""
    with connection.execute_wrapper(context):
        yield from pieces


class FailureMiddleware(RequestMiddleware):
    """Log `request_failed` with a traceback for each unhandled exception in Django, by django-structlog.

    Its records of the start and the end of requests are disabled, because `cdb_rest/observe/request_log.py` writes
    them for all requests, including those that Django does not handle.
    """

    def prepare(self, request: HttpRequest) -> None:
        """Do nothing: the request id is in every record already."""

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        """Do nothing: `RequestLog` logs the end of the request."""
