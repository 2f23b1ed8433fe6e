"""The context of a request: what records, metrics and the `Server-Timing` header say about it."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Protocol

from django.conf import settings

# The name that a client or a proxy gave a request: what may stand in a log, a header and a comment of SQL as it is.
REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
KEY = "cdb.exchange"

current: ContextVar["Exchange | None"] = ContextVar("exchange", default=None)


class Exchange:
    """What is known of a request and its answer so far; its clock runs from its making on.

    `request_id` is the client's, or one of our own where that is missing or no good. `route` is the path's pattern, None until
    it is known or where there is none; `actor` who asks, as far as known: the client's address, or a user's name; `status` the
    answer's, 0 before it; `bytes` those of its body that were handed over. Times are in seconds; those of the database and of
    rendering JSON are parts of the whole. `names_known` says whether the client named an answer that it has, `is_named` whether
    this one has a name, too.
    """

    __slots__ = (
        "actor",
        "begin",
        "bytes",
        "database",
        "is_named",
        "method",
        "names_known",
        "path",
        "queries",
        "rendering",
        "request_id",
        "route",
        "status",
    )

    def __init__(self, environ: Mapping[str, Any]) -> None:
        self.begin = perf_counter()
        named = environ.get("HTTP_X_REQUEST_ID", "")
        self.request_id = named if REQUEST_ID.fullmatch(named) else os.urandom(16).hex()
        self.method: str = environ.get("REQUEST_METHOD", "")
        self.path: str = environ.get("PATH_INFO", "")
        self.route: str | None = None
        self.actor = actor_of(environ)
        self.status = 0
        self.database = self.rendering = 0.0
        self.queries = self.bytes = 0
        self.names_known = "HTTP_IF_NONE_MATCH" in environ
        self.is_named = False

    def __call__(
        self, execute: Callable[..., Any], sql: Any, parameters: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        """Run a statement and add its time, as one of Django's wrappers around the execution of statements."""
        with self.query():
            return execute(sql, parameters, many, context)

    @contextmanager
    def query(self) -> Iterator[None]:
        """Add the time of the block to that of the database, as one query."""
        begin = perf_counter()
        try:
            yield
        finally:
            self.database += perf_counter() - begin
            self.queries += 1

    def hand_over(self, length: int) -> None:
        """Note that so many bytes of the body are handed over."""
        self.bytes += length

    def seconds(self) -> float:
        """How long it has taken so far."""
        return perf_counter() - self.begin


class ClientGoneError(Exception):
    """The server stopped reading a response's body before its end, because the client has closed the connection."""


class Observer(Protocol):
    """An object that is called at the beginning and the end of every request.

    What it does is part of the request's time. It must not raise.
    """

    def began(self, exchange: Exchange) -> None:
        """A request has arrived."""

    def ended(self, exchange: Exchange, error: BaseException | None) -> None:
        """The response was handed to the server, or `error` ended it: a `ClientGoneError` if the client has gone."""


def actor_of(environ: Mapping[str, Any]) -> str:
    """The user that a proxy has logged in, else the client's address.

    Headers are believed of a peer on a Unix socket, which is our own proxy, and of every peer if the settings say that all
    requests come through a proxy.
    """
    address: str | None = environ.get("REMOTE_ADDR")
    if address and not settings.CDB_BEHIND_PROXY:
        return address
    return environ.get("HTTP_X_FORWARDED_USER") or environ.get("HTTP_X_FORWARDED_FOR") or address or "local"


def exchange_of(environ: dict[str, Any]) -> Exchange:
    """The context of the request with this WSGI environment. Without the layer that creates it, as in tests, a new one."""
    exchange: Exchange | None = environ.get(KEY)
    if exchange is None:
        exchange = environ[KEY] = Exchange(environ)
    return exchange
