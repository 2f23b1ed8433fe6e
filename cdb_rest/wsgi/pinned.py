"""Pinned addresses, /pin/<tag>@<revision or time>/api/cdb_rest/…: the read API for one state of one global tag.

They are for clients of which only the base path can be configured. A request becomes the one with the parameter `rev` or `at`, so
it has the same response. The column `pin` of the table of routes says which routes a pinned address serves.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl, quote
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from cdb_rest.api.base.authorization import REFUSED
from cdb_rest.http.caching import PRECONDITIONS
from cdb_rest.parsing.parameters import PAST, parse_as_of
from cdb_rest.routes import ROUTES, Pin
from cdb_rest.rules.errors import CdbError, InvalidInputError, NotPinnedError, PinnedWriteError, invalid_field, quoted

PREFIX = "/api/cdb_rest/"
# Up to the last @ is the tag, because the names of old tags may have one.
ADDRESS = re.compile("/pin/([^/]+)@([^/@]+)(/.*)", re.DOTALL)
# Fixed paths come before paths with names, as in Django's patterns.
ROUTES_BY_PATH = sorted(((path, item.pin) for item in ROUTES for path in item.paths), key=lambda one: "<" in one[0])
PATTERNS = [
    (re.compile(re.sub("<.*?>", "([^/]+)", PREFIX + path.rstrip("/")) + "/?"), pin) for path, pin in ROUTES_BY_PATH
]
METHODS = ("GET", "HEAD", "OPTIONS")
# The parameters that name global tags, and those of a page of global tags.
TAG_NAMES = ("gtName", "base")
PAGE_NAMES = ("page", "page_size", "search", "sort", "order", "status")
CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", *PRECONDITIONS)
CACHING_HEADERS = ("ETag", "Last-Modified", "Cache-Control", "X-Accel-Expires")
EXAMPLE = "write /pin/<tag>@<revision>/api/cdb_rest/ or, with a time in ISO 8601, /pin/<tag>@<time>/api/cdb_rest/"
SERVED = ", ".join(item.paths[0].replace("str:", "") for item in ROUTES if item.pin)


class Pinned:
    """A WSGI application that passes requests to pinned addresses, as requests for the past, and all others to `application`.

    Those that a pinned address does not serve are refused through `refuse`.
    """

    def __init__(self, application: WSGIApplication, refuse: WSGIApplication) -> None:
        self._application = application
        self._refuse = refuse

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not environ["PATH_INFO"].startswith("/pin/"):
            return self._application(environ, start_response)
        try:
            pin = _rewrite(environ)
        except CdbError as error:
            environ[REFUSED] = error
            return self._refuse(environ, start_response)
        if pin is Pin.PRESENT:
            return self._application(environ, _without_caching(start_response))
        if pin is Pin.GLOBAL_TAGS and environ["REQUEST_METHOD"] != "OPTIONS":
            return self._respond_with_list(environ, start_response)
        return self._application(environ, start_response)

    def _respond_with_list(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The response with an array around its document, unless it is an error."""
        statuses: list[str] = []

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
            statuses.append(status)
            if status.startswith("200"):
                headers = [(name, str(int(text) + 2) if name == "Content-Length" else text) for name, text in headers]
            return start_response(status, headers, *error)

        pieces = self._application(environ, start)
        try:
            body = b"".join(pieces)
        finally:
            getattr(pieces, "close", lambda: None)()
        # The response to HEAD has no body.
        return [b"[%b]" % body if body and statuses[-1].startswith("200") else body]


def _rewrite(environ: WSGIEnvironment) -> Pin:
    """Make a request to a pinned address one for the state that it names. Returns what the address serves at this route.

    Raises `InvalidInputError`, `NotPinnedError` or `PinnedWriteError`. All but a malformed address are raised when the path is
    that of the route already, for metrics.
    """
    address = ADDRESS.fullmatch(environ["PATH_INFO"])
    # Django reads the name of the script as UTF-8.
    if address is None or "\N{REPLACEMENT CHARACTER}" in _decoded(environ["PATH_INFO"]):
        raise NotPinnedError(f"This is no pinned address; {EXAMPLE}.")
    name, state, path = address.groups()
    environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"].removesuffix(path)
    environ["PATH_INFO"] = path
    tag, query = _decoded(name), environ["QUERY_STRING"]
    if environ["REQUEST_METHOD"] not in METHODS:
        raise PinnedWriteError("A pinned address is only for reads; send writes to the address without /pin/.")
    parameter = _parameter(_decoded(state))
    found = ((pin, pattern.fullmatch(path)) for pattern, pin in PATTERNS)
    pin, named = next(((pin, match.groups()) for pin, match in found if match), (None, ()))
    if pin is None:
        raise NotPinnedError(f"There is nothing at {quoted(path)} of a pinned address, which serves {SERVED}.")
    pairs = parse_qsl(_decoded(query), keep_blank_values=True)
    given = {item for item, _ in pairs}
    for refused in (*PAST, *(PAGE_NAMES if pin is Pin.GLOBAL_TAGS else ())):
        if refused in given:
            raise invalid_field(refused, f"{refused} has no meaning at a pinned address; leave it out.")
    if pin is Pin.PRESENT:
        for condition in CONDITIONS:
            environ.pop(condition, None)
        return pin
    tags = [text for item, text in pairs if item in TAG_NAMES] + [_decoded(text) for text in named]
    other = next((text for text in tags if text and text != tag), None)
    if other is not None:
        raise NotPinnedError(
            f"This address is pinned to global tag {quoted(tag)}, and serves no other (got {quoted(other)})."
        )
    if pin is Pin.GLOBAL_TAGS:
        environ["PATH_INFO"] = f"{PREFIX}globalTag/{name}"
        parameter = f"light&{parameter}"
    environ["QUERY_STRING"] = f"{query}&{parameter}" if query else parameter
    return pin


def _parameter(state: str) -> str:
    """The parameter for a revision or a time. Raises `InvalidInputError`."""
    name = "rev" if state.isdecimal() else "at"
    try:
        parse_as_of({name: state})
    except InvalidInputError:
        raise InvalidInputError(f"{quoted(state)} is neither a revision nor a time; {EXAMPLE}.") from None
    return f"{name}={quote(state)}"


def _without_caching(start_response: StartResponse) -> StartResponse:
    """A function that starts a response without validators, which no cache may store."""

    def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
        kept = [(name, text) for name, text in headers if name not in CACHING_HEADERS]
        return start_response(status, [*kept, ("Cache-Control", "no-store")], *error)

    return start


def _decoded(text: str) -> str:
    """A text of the WSGI environment, which has the bytes of UTF-8 as Latin-1."""
    return text if text.isascii() else text.encode("latin-1", "replace").decode("utf-8", "replace")
