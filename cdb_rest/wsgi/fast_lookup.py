"""Lookups without Django, whose handling of a request costs more than all other Python code of a lookup.

This module handles only requests that are certainly valid lookups; Django handles the others. Both parse the query, run
it and format errors with the same functions, and a test compares their responses.
"""

from collections.abc import Iterable
from functools import lru_cache
from http.client import responses
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from cdb_rest.api import errors
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.http import security
from cdb_rest.http.caching import PRECONDITIONS
from cdb_rest.http.lookup import Extras, read_lookup, respond_to_lookup
from cdb_rest.lookup.model import LookupQuery
from cdb_rest.observe.request_context import RequestContext, context_of
from cdb_rest.observe.timing import HEADER, server_timing


class FastLookup:
    """A WSGI application that responds to lookups at `paths` and passes all other requests to another application.

    `paths` are whole paths, in both spellings of the trailing slash. Errors of a lookup become error responses.
    """

    def __init__(self, application: WSGIApplication, paths: Iterable[str]) -> None:
        self._application = application
        self._paths = frozenset(paths)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        parsed = self._parse(environ)
        if parsed is None:
            return self._application(environ, start_response)
        context = context_of(environ)
        context.route = environ["PATH_INFO"].rstrip("/")
        try:
            with context.query():
                status, headers, body = respond_to_lookup(*parsed, environ)
        except Exception as error:
            response = errors.handle(error, {})
            status, headers, body = response.status_code, dict(response.items()), response.content
        return send(start_response, context, status, headers, body)

    def _parse(self, environ: dict[str, Any]) -> tuple[LookupQuery, Extras] | None:
        """The lookup that the request asks for, or None if anything about it is unusual."""
        if environ["PATH_INFO"] not in self._paths or not is_plain(environ):
            return None
        pairs = parse_qsl(environ["QUERY_STRING"], keep_blank_values=True)
        parameters = dict(pairs)
        if len(parameters) < len(pairs):
            # Several tags, or an error.
            return None
        try:
            return read_lookup(parameters)
        except InvalidInputError:
            return None


def is_plain(environ: dict[str, Any]) -> bool:
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


def send(
    start_response: StartResponse, context: RequestContext, status: int, headers: dict[str, str], body: bytes
) -> Iterable[bytes]:
    """Send a response, as a WSGI application. Returns the pieces of its body.

    Adds the security headers, `Server-Timing` and, if there is a body, `Content-Length` to `headers`, which it changes.
    """
    headers |= security.HEADERS
    headers[HEADER] = server_timing(context)
    if body:
        headers["Content-Length"] = str(len(body))
    start_response(f"{status} {responses[status]}", list(headers.items()))
    return [body]


@lru_cache(maxsize=100)
def _is_allowed_host(host: str) -> bool:
    """Whether `ALLOWED_HOSTS` contains the host of this Host header, by Django's own rules."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)
