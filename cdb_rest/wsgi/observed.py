"""The outermost WSGI application: every request passes here, whoever answers it, and its end is known here alone."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from cdb_rest.observe.exchange import KEY, ClientGoneError, Exchange, Observer, current

HEADER = "X-Request-ID"
# The WSGI variable by which a server has another application answer a request, such as one that it can't take.
INSTEAD = "cdb.instead"


class Observed:
    """A WSGI application that lets observers look on while another one answers, and names each request in its answer."""

    def __init__(self, application: WSGIApplication, observers: Sequence[Observer]) -> None:
        self._application = application
        self._observers = observers

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> "Body":
        exchange = environ[KEY] = Exchange(environ)
        self._begin(exchange)

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
            exchange.status = int(status[:3])
            exchange.is_named = "ETag" in dict(headers)
            return start_response(status, [*headers, (HEADER, exchange.request_id)], *error)

        try:
            body = environ.get(INSTEAD, self._application)(environ, start)
        except BaseException as error:
            # The server answers so.
            exchange.status = exchange.status or 500
            self._end(exchange, error)
            raise
        return Body(body, lambda error: self._end(exchange, error), exchange.hand_over)

    def refuse(self, exchange: Exchange) -> None:
        """Tell of a request that the server refuses itself, because it can't be read; its status is known."""
        self._begin(exchange)
        self._end(exchange, None)

    def _begin(self, exchange: Exchange) -> None:
        # Until the server's thread turns to something else: what it says after the end concerns this request, too.
        current.set(exchange)
        for observer in self._observers:
            observer.began(exchange)

    def _end(self, exchange: Exchange, error: BaseException | None) -> None:
        for observer in self._observers:
            observer.ended(exchange, error)


class Body:
    """An answer's body that tells when it is over, and by which error, if any: its server closes it in any case. `hand_over` gets
    the length of each piece."""

    def __init__(
        self,
        pieces: Iterable[bytes],
        end: Callable[[BaseException | None], None],
        hand_over: Callable[[int], None] | None = None,
    ) -> None:
        self._pieces = pieces
        self._hand_over = hand_over
        self._end = end
        self._error: BaseException | None = ClientGoneError("the answer was not taken to its end")

    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self._pieces:
                if self._hand_over:
                    self._hand_over(len(piece))
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
