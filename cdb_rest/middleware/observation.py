"""What Django alone knows of a request: its route, its exceptions, the time of its SQL, noted in the request's context."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from inspect import unwrap

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import ResolverMatch, resolve
from django_structlog.middlewares import RequestMiddleware

from cdb_rest.api.errors import route_not_found
from cdb_rest.observe.exchange import Exchange, exchange_of
from cdb_rest.observe.timing import HEADER, server_timing

STATIC_FILES = f"/{settings.STATIC_URL.strip('/')}/<file>"
PARAMETER = re.compile(r"\(\?P<(\w+)>[^)]*\)|<(?:\w+:)?(\w+)>")
ANCHORS = re.compile(r"[\^$]|/\?")


@lru_cache(maxsize=1000)
def name_of(pattern: str) -> str:
    """The name of a pattern as Django has it: the path with a word for each part that varies, and no slash at its end."""
    named = PARAMETER.sub(lambda found: f"<{found[1] or found[2]}>", pattern)
    return f"/{ANCHORS.sub('', named).rstrip('/')}"


class RouteMiddleware:
    """Notes the route of each request that Django handles, also of those that are refused before it is looked for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        match = request.resolver_match or resolve(request.path_info)
        exchange_of(request.META).route = _route_of(match, request, response)
        return response


def _route_of(match: ResolverMatch, request: HttpRequest, response: HttpResponseBase) -> str | None:
    if unwrap(match.func) is not route_not_found:
        return name_of(match.route)
    is_file = response.status_code < 400 and request.path_info.startswith(settings.STATIC_URL)
    return STATIC_FILES if is_file else None


class TimingMiddleware:
    """Tells in a header of each answer how long it took; of a streamed one, until its body began."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        exchange = exchange_of(request.META)
        with connection.execute_wrapper(exchange):
            response = self.get_response(request)
        if isinstance(response, StreamingHttpResponse):
            # WSGI knows no asynchronous bodies.
            response.streaming_content = _counted(response.streaming_content, exchange)  # type: ignore[arg-type]
        # In development the toolbar has told its times already.
        told = response.headers.get(HEADER)
        response.headers[HEADER] = f"{server_timing(exchange)}, {told}" if told else server_timing(exchange)
        return response


def _counted(pieces: Iterable[bytes], exchange: Exchange) -> Iterator[bytes]:
    """The pieces of a body, with the statements that they take counted as the others of the request."""
    with connection.execute_wrapper(exchange):
        yield from pieces


class FailureMiddleware(RequestMiddleware):
    """django-structlog's record `request_failed` for each exception that only Django sees, with its traceback.

    Its other records, when a request started and finished, are left out: those of all requests are written by
    `cdb_rest/observe/records.py`, whether Django has anything to do with them or not.
    """

    def prepare(self, request: HttpRequest) -> None:
        """Do nothing: the request's context is in every record already."""

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        """Do nothing: `Records` writes the record of the end of a response."""
