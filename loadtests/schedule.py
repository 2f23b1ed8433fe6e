"""The waves of requests that the campaign hammer plans and the user `Scheduled` sends."""

from itertools import product
from typing import NamedTuple


class Wave(NamedTuple):
    """`count` requests to a route, one every `offset_ms` milliseconds, whatever the outcome of earlier ones.

    A wave begins when all requests of the previous one have ended.
    """

    route: str
    count: int
    offset_ms: int

    @property
    def name(self) -> str:
        """The name of the requests in the recording."""
        return f"{self.route}: {self.count} × {self.offset_ms} ms"


def waves(routes: str, counts: str, offsets: str) -> list[Wave]:
    """A wave for each combination of comma-separated routes, numbers of requests and milliseconds."""
    return [
        Wave(route, int(count), int(ms))
        for route, count, ms in product(*(text.split(",") for text in (routes, counts, offsets)))
    ]
