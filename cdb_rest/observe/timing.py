"""The `Server-Timing` header: the duration of a request, and its parts in SQL and in rendering."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from django.http import HttpRequest

from cdb_rest.observe.request_context import KEY, RequestContext

HEADER = "Server-Timing"


def server_timing(context: RequestContext) -> str:
    """The value of the `Server-Timing` header up to now; durations are in milliseconds."""
    queries = f"{context.queries} {'query' if context.queries == 1 else 'queries'}"
    return (
        f'db;dur={1000 * context.database:.3f};desc="{queries}", render;dur={1000 * context.rendering:.3f}, '
        f"total;dur={1000 * context.seconds():.3f}"
    )


@contextmanager
def rendering(request: HttpRequest | None) -> Iterator[None]:
    """Add the time of the block to the rendering time of the request, if it has a context."""
    begin = perf_counter()
    yield
    context = request and request.META.get(KEY)
    if context:
        context.rendering += perf_counter() - begin
