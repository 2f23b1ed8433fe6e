"""304 responses without Django, for conditional GETs (`If-None-Match`) of global tags and their lists of payload lists.

A cache that revalidates each time sends a conditional GET for nearly every request of its clients. If the response has
changed, or the request is about the past or unusual in any way, Django handles it.
"""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from cdb_rest.api import errors
from cdb_rest.http.caching import Resource, conditional_get
from cdb_rest.observe.request_context import context_of
from cdb_rest.parsing.parameters import AS_OF, is_light
from cdb_rest.wsgi.fast_lookup import is_plain, send

# Patterns of paths below the prefix of the API. Names that are not ASCII are left to Django.
ALL = re.compile(r"(?:globalTags|global-tags)/?")
TAG = re.compile(r"(?:globalTag|global-tags(?!/statuses/?$))/(?P<name>[!-.0-~ ]+)/?")
LISTS = re.compile(r"(?:gtPayloadLists/(?P<name>[!-.0-~ ]+)|global-tags/(?P<other>[!-.0-~ ]+)/payload-lists)/?")


class FastConditionalGet:
    """A WSGI application that responds with 304 where it can and passes all other requests to another application.

    If the database fails, it sends the error response itself. `prefix` is the path of the API, with a slash at its end.
    """

    def __init__(self, application: WSGIApplication, prefix: str) -> None:
        self._application = application
        self._prefix = prefix

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        parsed = self._parse(environ)
        if parsed is None:
            return self._application(environ, start_response)
        resource, route = parsed
        context = context_of(environ)
        try:
            with context.query():
                response = conditional_get(environ, resource)
        except Exception as error:
            response = errors.handle(error, {})
        if response is None:
            return self._application(environ, start_response)
        context.route = route
        return send(start_response, context, response.status_code, dict(response.items()), response.content)

    def _parse(self, environ: dict[str, Any]) -> tuple[Resource, str] | None:
        """The resource and the route of a GET with `If-None-Match`, or None for any other request."""
        if "HTTP_IF_NONE_MATCH" not in environ or not is_plain(environ):
            return None
        path, query = environ["PATH_INFO"].removeprefix(self._prefix), environ["QUERY_STRING"]
        if not query and ALL.fullmatch(path):
            return Resource.all_tags(), self._route(path)
        pairs = parse_qsl(query, keep_blank_values=True)
        parameters = dict(pairs)
        if len(parameters) < len(pairs) or not parameters.keys().isdisjoint(AS_OF):
            # An error, or a state in the past.
            return None
        if found := TAG.fullmatch(path):
            light = is_light(parameters.get("light"))
            return Resource.tag(found["name"], light=light), self._route(path, found)
        if found := LISTS.fullmatch(path):
            return Resource.payload_lists(found["name"] or found["other"]), self._route(path, found)
        return None

    def _route(self, path: str, found: re.Match[str] | None = None) -> str:
        """The route: the path with a placeholder instead of the name that was found in it."""
        if found and found.lastgroup:
            path = f"{path[: found.start(found.lastgroup)]}<name>{path[found.end(found.lastgroup) :]}"
        return self._prefix + path.rstrip("/")
