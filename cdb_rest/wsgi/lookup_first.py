"""The shortest way from a lookup to its answer: before Django's handling of requests, which costs more than the rest of what
Python does for it.

Only what is plainly a lookup is answered here; whatever else comes goes the usual way. Both ways read the question, ask it
and word errors by the same functions, and a test holds their answers against each other.
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
from cdb_rest.http.lookup import Extras, answer_lookup, read_lookup
from cdb_rest.lookup.question import Question
from cdb_rest.observe.exchange import Exchange, exchange_of
from cdb_rest.observe.timing import HEADER, server_timing


class LookupFirst:
    """A WSGI application that answers lookups at `paths` and leaves all other requests to another application."""

    def __init__(self, application: WSGIApplication, paths: Iterable[str]) -> None:
        self._application = application
        self._paths = frozenset(paths)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        asked = self._asked(environ)
        if asked is None:
            return self._application(environ, start_response)
        exchange = exchange_of(environ)
        exchange.route = environ["PATH_INFO"].rstrip("/")
        try:
            with exchange.query():
                status, headers, body = answer_lookup(*asked, environ)
        except Exception as error:
            response = errors.handle(error, {})
            status, headers, body = response.status_code, dict(response.items()), response.content
        return send(start_response, exchange, status, headers, body)

    def _asked(self, environ: dict[str, Any]) -> tuple[Question, Extras] | None:
        """What the request asks, or None if there is anything unusual about it."""
        if environ["PATH_INFO"] not in self._paths or not is_plain(environ):
            return None
        try:
            return read_lookup(dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True)))
        except InvalidInputError:
            return None


def is_plain(environ: dict[str, Any]) -> bool:
    """Whether a request is a GET without a body, for a host of ours, with nothing in it that needs a closer look."""
    query = environ["QUERY_STRING"]
    return (
        environ["REQUEST_METHOD"] == "GET"
        and environ.get("CONTENT_LENGTH", "") in ("", "0")
        and "HTTP_TRANSFER_ENCODING" not in environ
        and not any(name in environ for name in PRECONDITIONS)
        and query.isascii()
        and "%00" not in query
        and _is_ours(environ.get("HTTP_HOST", ""))
    )


def send(
    start_response: StartResponse, exchange: Exchange, status: int, headers: dict[str, str], body: bytes
) -> Iterable[bytes]:
    """Send an answer with its times; one without a body is sent without its length."""
    headers |= security.HEADERS
    headers[HEADER] = server_timing(exchange)
    if body:
        headers["Content-Length"] = str(len(body))
    start_response(f"{status} {responses[status]}", list(headers.items()))
    return [body]


@lru_cache(maxsize=100)
def _is_ours(host: str) -> bool:
    """Whether the service answers to this Host header, by Django's own rules."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)
