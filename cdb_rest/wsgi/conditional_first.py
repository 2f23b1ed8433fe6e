"""The shortest way to tell a client that what it has still holds: before Django's handling of requests.

A cache that must ask each time asks this for nearly every request of its clients. Where the answer has changed, or anything is
unusual, the request goes the usual way.
"""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from cdb_rest.api import errors
from cdb_rest.http.caching import Subject, answer_if_kept
from cdb_rest.observe.exchange import exchange_of
from cdb_rest.parsing.parameters import is_light
from cdb_rest.wsgi.lookup_first import is_plain, send

# Paths as WSGI has them, below the API's own; names that are not ASCII go the usual way.
ALL = re.compile(r"(?:globalTags|global-tags)/?")
TAG = re.compile(r"(?:globalTag|global-tags(?!/statuses/?$))/(?P<name>[!-.0-~ ]+)/?")
LISTS = re.compile(r"(?:gtPayloadLists/(?P<name>[!-.0-~ ]+)|global-tags/(?P<other>[!-.0-~ ]+)/payload-lists)/?")


class ConditionalFirst:
    """A WSGI application that answers 304 itself and leaves all other requests to another application."""

    def __init__(self, application: WSGIApplication, prefix: str) -> None:
        self._application = application
        self._prefix = prefix

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        asked = self._asked(environ)
        if asked is None:
            return self._application(environ, start_response)
        subject, route = asked
        exchange = exchange_of(environ)
        try:
            with exchange.query():
                response = answer_if_kept(environ, subject)
        except Exception as error:
            response = errors.handle(error, {})
        if response is None:
            return self._application(environ, start_response)
        exchange.route = route
        return send(start_response, exchange, response.status_code, dict(response.items()), response.content)

    def _asked(self, environ: dict[str, Any]) -> tuple[Subject, str] | None:
        """What the client's answer is called after, and the name of the route, or None if it names no answer."""
        if "HTTP_IF_NONE_MATCH" not in environ or not is_plain(environ):
            return None
        path, query = environ["PATH_INFO"].removeprefix(self._prefix), environ["QUERY_STRING"]
        if not query and ALL.fullmatch(path):
            return Subject.all_tags(), self._route(path)
        if found := TAG.fullmatch(path):
            light = is_light([value for name, value in parse_qsl(query, keep_blank_values=True) if name == "light"])
            return Subject.tag(found["name"], light=light), self._route(path, found)
        if found := LISTS.fullmatch(path):
            return Subject.payload_lists(found["name"] or found["other"]), self._route(path, found)
        return None

    def _route(self, path: str, found: re.Match[str] | None = None) -> str:
        """The name of the route: its path, without the name that was found in it."""
        if found and found.lastgroup:
            path = f"{path[: found.start(found.lastgroup)]}<name>{path[found.end(found.lastgroup) :]}"
        return self._prefix + path.rstrip("/")
