"""Where the time of a request went, for whoever looks at the answer's headers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request

HEADER = "Server-Timing"


class Stopwatch:
    """The times of one request: in the database, and in rendering JSON. It runs from its making on."""

    __slots__ = ("begin", "database", "queries", "rendering")

    def __init__(self) -> None:
        self.begin = perf_counter()
        self.database = self.rendering = 0.0
        self.queries = 0

    def __call__(self, execute: Callable, sql: Any, parameters: Any, many: bool, context: dict) -> Any:
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

    def header(self) -> str:
        """The value of the header ``Server-Timing``; durations in milliseconds."""
        total = perf_counter() - self.begin
        queries = f"{self.queries} {'query' if self.queries == 1 else 'queries'}"
        return (
            f'db;dur={1000 * self.database:.3f};desc="{queries}", render;dur={1000 * self.rendering:.3f}, '
            f"total;dur={1000 * total:.3f}"
        )


@contextmanager
def rendering(request: Request | None) -> Iterator[None]:
    """Add the time of the block to that of rendering, if the request's time is taken."""
    begin = perf_counter()
    yield
    stopwatch = getattr(request, "stopwatch", None)
    if stopwatch:
        stopwatch.rendering += perf_counter() - begin


class TimingMiddleware:
    """Tells in a header of each answer how long it took; of a streamed one, until its body began."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.stopwatch = stopwatch = Stopwatch()
        with connection.execute_wrapper(stopwatch):
            response = self.get_response(request)
        # In development the toolbar has told its times already.
        told = response.headers.get(HEADER)
        response.headers[HEADER] = f"{stopwatch.header()}, {told}" if told else stopwatch.header()
        return response
