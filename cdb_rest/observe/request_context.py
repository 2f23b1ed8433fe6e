"""The context of a request: the facts for log records, metrics and the `Server-Timing` header."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any

from django.conf import settings

# A request id from a client or proxy is accepted only if it is safe in a log, in a header and in an SQL comment.
REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
KEY = "cdb.context"
TIMING_HEADER = "Server-Timing"
# Characters of an actor's name that an SQL comment must not contain.
UNSAFE = re.compile(r"[^A-Za-z0-9@:._-]", re.ASCII)
MAX_IDENTITY_LENGTH = 100
current_context: ContextVar["RequestContext | None"] = ContextVar("context", default=None)


class RequestContext:
    """The context of one request; its clock starts when it is created.

    - `request_id`: the client's or proxy's `X-Request-ID`, or a new one if that is missing or invalid.
    - `path`: the path as WSGI passes it: its bytes decoded as Latin-1.
    - `route`: the pattern of the path; None until it is known, or if there is none.
    - `actor`: the result of `actor_of`, until the principal is known; then the principal's name.
    - `identity`: the actor for SQL comments, shortened and without special characters. It is empty until `identify` is
      called, and if the client was not identified.
    - `status`: the status of the response; 0 before it starts.
    - `bytes`: the number of bytes of the response's body that were passed to the WSGI server.
    - `began`: when a thread began to handle the request, by the monotonic clock.
    - `database`, `rendering`: the seconds spent in SQL and in rendering JSON; `queries`: the number of SQL statements.
    """

    __slots__ = (
        "actor",
        "began",
        "bytes",
        "database",
        "identity",
        "method",
        "path",
        "queries",
        "rendering",
        "request_id",
        "route",
        "status",
    )

    def __init__(self, environ: Mapping[str, Any]) -> None:
        self.began = monotonic()
        named = environ.get("HTTP_X_REQUEST_ID", "")
        self.request_id = named if REQUEST_ID.fullmatch(named) else os.urandom(16).hex()
        self.method: str = environ.get("REQUEST_METHOD", "")
        self.path: str = environ.get("PATH_INFO", "")
        self.route: str | None = None
        self.actor = actor_of(environ)
        self.identity = ""
        self.status = 0
        self.database = self.rendering = 0.0
        self.queries = self.bytes = 0

    def __call__(
        self, execute: Callable[..., Any], sql: Any, parameters: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        """Run an SQL statement, count it and add its time. A wrapper for Django's `connection.execute_wrapper`."""
        with self.query():
            return execute(sql, parameters, many, context)

    @contextmanager
    def query(self) -> Iterator[None]:
        """Count the block as one SQL statement and add its time."""
        begin = monotonic()
        try:
            yield
        finally:
            self.database += monotonic() - begin
            self.queries += 1

    def identify(self, name: str, *, is_known: bool) -> None:
        """Set the actor. `is_known` says whether the client was identified; if not, `identity` becomes empty."""
        self.actor = name
        self.identity = UNSAFE.sub("_", name)[:MAX_IDENTITY_LENGTH] if is_known else ""

    def seconds(self) -> float:
        """The seconds since a thread began to handle the request."""
        return monotonic() - self.began

    def server_timing(self) -> str:
        """The value of the `Server-Timing` header up to now; durations are in milliseconds."""
        queries = f"{self.queries} {'query' if self.queries == 1 else 'queries'}"
        return (
            f'db;dur={1000 * self.database:.3f};desc="{queries}", render;dur={1000 * self.rendering:.3f}, '
            f"total;dur={1000 * self.seconds():.3f}"
        )


class ClientGoneError(Exception):
    """The server stopped reading a response's body before its end, because it could not send the body to the client.

    The error is not raised, but passed to `RequestObserver.ended`.
    """


def user_of(environ: Mapping[str, Any]) -> str:
    """The user whom a proxy has logged in and named in `X-Forwarded-User`; empty if there is none.

    A name with a colon is ignored, because it could be that of a token, a network or a person of an identity provider.
    """
    name: str = environ.get("HTTP_X_FORWARDED_USER", "") if _is_from_proxy(environ) else ""
    return "" if ":" in name else name


def address_of(environ: Mapping[str, Any]) -> str:
    """The client's address; empty if it is unknown, as on a Unix socket without our proxy.

    From a proxy, it is the value of `X-Forwarded-For`, which is not checked: it may be several addresses or other text.
    """
    own: str = environ.get("REMOTE_ADDR") or ""
    return environ.get("HTTP_X_FORWARDED_FOR") or own if _is_from_proxy(environ) else own


def actor_of(environ: Mapping[str, Any]) -> str:
    """The user whom a proxy has logged in, else the client's address, else `local`."""
    return user_of(environ) or address_of(environ) or "local"


def _is_from_proxy(environ: Mapping[str, Any]) -> bool:
    """Whether the headers `X-Forwarded-User` and `X-Forwarded-For` are those of a proxy.

    They are trusted on a Unix socket, where only our own proxy connects, and everywhere if `CDB_BEHIND_PROXY` says that all
    requests come through a proxy.
    """
    return not environ.get("REMOTE_ADDR") or settings.CDB_BEHIND_PROXY


def context_of(environ: dict[str, Any]) -> RequestContext:
    """The context of the request with this WSGI environment.

    It is created and stored in `environ` if `Observed` has not done so, as in tests.
    """
    context: RequestContext | None = environ.get(KEY)
    if context is None:
        context = environ[KEY] = RequestContext(environ)
    return context


@contextmanager
def rendering(environ: Mapping[str, Any]) -> Iterator[None]:
    """Add the time of the block to the rendering time of the request, if it has a context."""
    begin = monotonic()
    yield
    context: RequestContext | None = environ.get(KEY)
    if context:
        context.rendering += monotonic() - begin
