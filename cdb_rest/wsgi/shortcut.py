"""Hot reads without Django, whose handling of a request costs more than all other Python code of a lookup.

Only requests that are certainly valid are handled here; Django handles the others. Both use the same functions.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from http.client import responses
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from cdb_rest.api.base import errors
from cdb_rest.http.caching import PRECONDITIONS, Resource, conditional_get
from cdb_rest.http.hot_reads import Response, respond
from cdb_rest.http.lookup import KNOWN, read_lookup, respond_to_lookup
from cdb_rest.http.security import HEADERS
from cdb_rest.observe.request_context import TIMING_HEADER, context_of
from cdb_rest.parsing.parameters import refused_names
from cdb_rest.routes import ROUTES, Hot
from cdb_rest.rules.errors import InvalidInputError

PREFIX = "/api/cdb_rest/"
# The hot reads with a fixed path, and all other fixed paths, which a pattern below may also match.
FIXED = {PREFIX + path: item.hot for item in ROUTES for path in item.spellings if "<" not in path}
# The routes with a name, which must be ASCII.
NAMED = [
    (PREFIX + path.replace("str:", ""), item.hot) for item in ROUTES if item.hot for path in item.paths if "<" in path
]
PATTERNS = [
    (re.compile(re.sub("<.*?>", "([!-.0-~ ]+)", route.rstrip("/")) + "/?"), kind, route) for route, kind in NAMED
]
# The parameters of a lookup that need no further check.
USUAL = {"gtName", "majorIOV", "minorIOV", "shape", "window", "snap", *KNOWN}
LIGHT = re.compile("light(?:=[^&]*)?")


class Shortcut:
    """A WSGI application that responds to hot reads and passes all other requests to another application."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        found = _find(environ["PATH_INFO"], environ["QUERY_STRING"]) if _is_plain(environ) else None
        if found is None:
            return self._application(environ, start_response)
        context = context_of(environ)
        route, read = found
        try:
            response = read(environ)
        except Exception as error:
            response = errors.respond(error)
        if response is None:
            return self._application(environ, start_response)
        context.route = route
        status, headers, body = response
        headers |= HEADERS | {TIMING_HEADER: context.server_timing()}
        if body:
            headers["Content-Length"] = str(len(body))
        start_response(f"{status} {responses[status]}", list(headers.items()))
        return [body]


def _is_plain(environ: dict[str, Any]) -> bool:
    """Whether a request is a GET for an allowed host, without a body and without a precondition.

    The query string must be ASCII and must not have `%00`; other percent-encoded characters are accepted.
    """
    query = environ["QUERY_STRING"]
    return (
        environ["REQUEST_METHOD"] == "GET"
        and environ.get("CONTENT_LENGTH", "") in ("", "0")
        and "HTTP_TRANSFER_ENCODING" not in environ
        and not any(name in environ for name in PRECONDITIONS)
        and query.isascii()
        and "%00" not in query
        and _is_allowed_host(environ.get("HTTP_HOST", ""))
    )


@lru_cache(maxsize=100)
def _is_allowed_host(host: str) -> bool:
    """Whether `ALLOWED_HOSTS` contains the host of this Host header, by Django's own rules."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


# A hot read: its route, and a function that responds to it; None from it means that Django must respond.
HotRead = tuple[str, Callable[[Mapping[str, Any]], Response | None]]


def _find(path: str, query: str) -> HotRead | None:
    """The hot read that a GET of a path with a query string is; None for any other request, or one that is unusual."""
    if path in FIXED:
        kind = FIXED[path]
        if kind is Hot.LOOKUP:
            return _find_lookup(path, query)
        return (path.rstrip("/"), partial(respond, kind, "")) if kind and not query else None
    for pattern, kind, route in PATTERNS:
        if match := pattern.fullmatch(path):
            light = LIGHT.fullmatch(query)
            if kind is Hot.GLOBAL_TAG and not light:
                return None if query else (route, partial(_unchanged, match[1]))
            return (route, partial(respond, kind, match[1])) if not query or kind is Hot.GLOBAL_TAG else None
    return None


def _find_lookup(path: str, query: str) -> HotRead | None:
    pairs = parse_qsl(query, keep_blank_values=True)
    parameters = dict(pairs)
    try:
        # Several tags are left to Django, and so is an error.
        if len(parameters) < len(pairs) or refused_names(parameters.keys() - USUAL, KNOWN):
            return None
        return path.rstrip("/"), partial(respond_to_lookup, *read_lookup(parameters))
    except InvalidInputError:
        return None


def _unchanged(name: str, meta: Mapping[str, Any]) -> Response | None:
    """The 304 response to a conditional GET of a whole tag; None if the client's copy is not current, or if it has none."""
    found = conditional_get(meta, Resource.tag(name))
    return None if found is None else (304, dict(found.items()), b"")
