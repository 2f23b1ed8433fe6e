"""The `Server-Timing` header: how long a request took, and its parts in the database and in rendering."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from django.http import HttpRequest

from cdb_rest.observe.exchange import KEY, Exchange

HEADER = "Server-Timing"


def server_timing(exchange: Exchange) -> str:
    """The value of the header ``Server-Timing`` so far; durations in milliseconds."""
    queries = f"{exchange.queries} {'query' if exchange.queries == 1 else 'queries'}"
    return (
        f'db;dur={1000 * exchange.database:.3f};desc="{queries}", render;dur={1000 * exchange.rendering:.3f}, '
        f"total;dur={1000 * exchange.seconds():.3f}"
    )


@contextmanager
def rendering(request: HttpRequest | None) -> Iterator[None]:
    """Add the time of the block to that of rendering, if the request's time is taken."""
    begin = perf_counter()
    yield
    exchange = request and request.META.get(KEY)
    if exchange:
        exchange.rendering += perf_counter() - begin
