"""Where the time of a request went, for whoever looks at the answer's headers."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter

from django.db import connection
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request

from cdb_rest.observe.exchange import KEY, Exchange, exchange_of

HEADER = "Server-Timing"


def server_timing(exchange: Exchange) -> str:
    """The value of the header ``Server-Timing`` so far; durations in milliseconds."""
    queries = f"{exchange.queries} {'query' if exchange.queries == 1 else 'queries'}"
    return (
        f'db;dur={1000 * exchange.database:.3f};desc="{queries}", render;dur={1000 * exchange.rendering:.3f}, '
        f"total;dur={1000 * exchange.seconds():.3f}"
    )


@contextmanager
def rendering(request: Request | None) -> Iterator[None]:
    """Add the time of the block to that of rendering, if the request's time is taken."""
    begin = perf_counter()
    yield
    exchange = request and request.META.get(KEY)
    if exchange:
        exchange.rendering += perf_counter() - begin


def _counted(pieces: Iterable[bytes], exchange: Exchange) -> Iterator[bytes]:
    """The pieces of a body, with the statements that they take counted as the others of the request."""
    with connection.execute_wrapper(exchange):
        yield from pieces


class TimingMiddleware:
    """Tells in a header of each answer how long it took; of a streamed one, until its body began."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        exchange = exchange_of(request.META)
        with connection.execute_wrapper(exchange):
            response = self.get_response(request)
        if response.streaming:
            response.streaming_content = _counted(response.streaming_content, exchange)
        # In development the toolbar has told its times already.
        told = response.headers.get(HEADER)
        response.headers[HEADER] = f"{server_timing(exchange)}, {told}" if told else server_timing(exchange)
        return response
