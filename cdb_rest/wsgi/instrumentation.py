"""The outermost WSGI application: it gives each request its context and calls the observers at its start and end."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from cdb_rest.observe.request_context import KEY, ClientGoneError, Observer, RequestContext, current_context

HEADER = "X-Request-ID"
# WSGI variable: an application that responds in place of the usual one, set by the worker for a request that it refuses.
REPLACEMENT = "cdb.replacement"


class Instrumented:
    """A WSGI application that wraps another one, calls the observers, and adds `X-Request-ID` to each response.

    It creates the request context, and stores it in the WSGI environment and in `current_context`. The server must
    close the body of the response; this calls the observers (`ended`). Exceptions of the application are raised again.
    """

    def __init__(self, application: WSGIApplication, observers: Sequence[Observer]) -> None:
        self._application = application
        self._observers = observers

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> "Body":
        context = environ[KEY] = RequestContext(environ)
        self._begin(context)

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
            context.status = int(status[:3])
            context.has_etag = "ETag" in dict(headers)
            return start_response(status, [*headers, (HEADER, context.request_id)], *error)

        try:
            body = environ.get(REPLACEMENT, self._application)(environ, start)
        except BaseException as error:
            # The worker responds to an exception with 500.
            context.status = context.status or 500
            self._end(context, error)
            raise
        return Body(body, lambda error: self._end(context, error), context.count_bytes)

    def refuse(self, context: RequestContext) -> None:
        """Call the observers for a request that the worker rejects without calling the application.

        The worker must have set `context.status`, and must send the response itself.
        """
        self._begin(context)
        self._end(context, None)

    def _begin(self, context: RequestContext) -> None:
        # The context stays until the thread starts another request: what it logs after the end belongs to this one.
        current_context.set(context)
        for observer in self._observers:
            observer.began(context)

    def _end(self, context: RequestContext, error: BaseException | None) -> None:
        for observer in self._observers:
            observer.ended(context, error)


class Body:
    """The body of a response, which calls `end` when it is closed.

    The argument of `end` is None if all pieces were read, else the error that `pieces` raised, or `ClientGoneError` if
    the server stopped reading. WSGI servers close each body. `count_bytes` is called with the length of each piece.
    """

    def __init__(
        self,
        pieces: Iterable[bytes],
        end: Callable[[BaseException | None], None],
        count_bytes: Callable[[int], None] | None = None,
    ) -> None:
        self._pieces = pieces
        self._count_bytes = count_bytes
        self._end = end
        self._error: BaseException | None = ClientGoneError("the client did not read the response to its end")

    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self._pieces:
                if self._count_bytes:
                    self._count_bytes(len(piece))
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
            self._end(self._error)
