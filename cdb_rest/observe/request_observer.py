"""The outermost WSGI application: it gives each request its context, and records it in metrics and the log."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from http.client import responses
from typing import Any, NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import Counter, Histogram

from cdb_rest.observe import metrics
from cdb_rest.observe.request_context import KEY, ClientGoneError, RequestContext, current_context

logger = logging.getLogger("cdb.request")

# Other methods are counted as "other", because a client may send any word.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
NO_ROUTE = "unknown"
MAX_PATH_LENGTH = 1000
PROBES = ("/health/", "/metrics")
HEADER = "X-Request-ID"


class Series(NamedTuple):
    """The series of the metrics to which a request is added."""

    requests: Counter
    seconds: Histogram
    database: Counter


@lru_cache(maxsize=1000)
def _series_of(route: str, method: str, status: int) -> Series:
    return Series(
        metrics.REQUESTS.labels(route, method, status),
        metrics.REQUEST_SECONDS.labels(route),
        metrics.DATABASE_SECONDS.labels(route),
    )


def began(context: RequestContext) -> None:
    """Record that a thread begins to handle a request."""
    metrics.IN_PROGRESS.inc()
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("started", extra={"fields": {"method": context.method, "path": _path(context)}})


def ended(context: RequestContext, error: BaseException | None) -> None:
    """Record the end of a request. `error` is None if the whole response was passed to the server.

    Otherwise it is the exception of the application, or `ClientGoneError`. A request without a status counts as one with 500.
    """
    status = context.status or 500
    seconds = context.seconds()
    method = context.method if context.method in METHODS else "other"
    series = _series_of(context.route or NO_ROUTE, method, status)
    metrics.IN_PROGRESS.dec()
    series.requests.inc()
    series.seconds.observe(seconds)
    if context.database:
        series.database.inc(context.database)
    if status == 304:
        metrics.UNCHANGED.inc()
    level = _level(context, error)
    if logger.isEnabledFor(level):
        fields = {
            "method": context.method,
            "path": _path(context),
            "route": context.route,
            "status": status,
            "duration_ms": round(1000 * seconds, 3),
            "database_ms": round(1000 * context.database, 3),
            "queries": context.queries,
            "actor": context.actor,
            "bytes": context.bytes,
        }
        if error is not None:
            fields["broke_off"] = str(error) if isinstance(error, ClientGoneError) else type(error).__name__
        is_bug = error is not None and not isinstance(error, ClientGoneError)
        logger.log(level, "finished", extra={"fields": fields}, exc_info=error if is_bug else None)


def _level(context: RequestContext, error: BaseException | None) -> int:
    """The level of the record: error for a bug, warning for overload or if the database is down, else info.

    Health checks and scrapes, which come every few seconds, are logged at level DEBUG. Status 500 is a bug, and so is an
    exception other than `ClientGoneError` and `OSError`.
    """
    if context.status == 500 or not (error is None or isinstance(error, ClientGoneError | OSError)):
        return logging.ERROR
    if context.status > 500:
        return logging.WARNING
    return logging.DEBUG if context.path.startswith(PROBES) else logging.INFO


def _path(context: RequestContext) -> str:
    """The decoded path. WSGI passes its bytes as Latin-1."""
    path = context.path[:MAX_PATH_LENGTH]
    return path if path.isascii() else path.encode("latin-1", "replace").decode("utf-8", "replace")


class Observed:
    """A WSGI application that wraps another one, records each request, and adds `X-Request-ID` to each response.

    It creates the request context, and stores it in the WSGI environment and in `current_context`. An exception of the
    application becomes the response (status, headers, body) that `on_error` returns.
    """

    def __init__(
        self, application: WSGIApplication, on_error: Callable[[Exception], tuple[int, dict[str, str], bytes]]
    ) -> None:
        self._application = application
        self._on_error = on_error

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        context = environ[KEY] = RequestContext(environ)
        # The context stays until the thread starts another request: what it logs after the end belongs to this one.
        current_context.set(context)
        began(context)

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
            context.status = int(status[:3])
            return start_response(status, [*headers, (HEADER, context.request_id)], *error)

        try:
            body = self._application(environ, start)
        except Exception as error:
            number, headers, content = self._on_error(error)
            start(f"{number} {responses[number]}", list(headers.items()))
            body = [content]
        if isinstance(body, list):
            context.bytes = sum(map(len, body))
            ended(context, None)
            return body
        return _Body(body, context)


class _Body:
    """The body of a response in pieces, which records the end of the request when the server closes it."""

    def __init__(self, pieces: Iterable[bytes], context: RequestContext) -> None:
        self._pieces = pieces
        self._context = context
        self._error: BaseException | None = ClientGoneError("the client did not read the response to its end")

    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self._pieces:
                self._context.bytes += len(piece)
                yield piece
        except GeneratorExit:
            raise
        except BaseException as error:
            self._error = error
            raise
        else:
            self._error = None

    def close(self) -> None:
        try:
            close = getattr(self._pieces, "close", None)
            if close:
                close()
        finally:
            ended(self._context, self._error)


_PARAMETER = re.compile(r"\(\?P<(\w+)>[^)]*\)|<(?:\w+:)?(\w+)>")
_ANCHORS = re.compile(r"[\^$]|/\?")


@lru_cache(maxsize=1000)
def route_of(pattern: str) -> str:
    """The route of a Django URL pattern: the path with `<name>` for each parameter, without a trailing slash."""
    named = _PARAMETER.sub(lambda found: f"<{found[1] or found[2]}>", pattern)
    return f"/{_ANCHORS.sub('', named).rstrip('/')}"
