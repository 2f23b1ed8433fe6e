"""Whether an interval may enter a payload list."""

from collections.abc import Iterable
from dataclasses import dataclass

from cdb_rest.domain.errors import OverlapError
from cdb_rest.domain.moment import Interval


@dataclass(frozen=True, slots=True)
class PlacedIOV:
    """An IOV that is part of a list: its id, its payload and its interval."""

    id: int
    payload_url: str
    interval: Interval


def check_free(new: Interval, neighbours: Iterable[PlacedIOV]) -> None:
    """Raise `OverlapError`, naming the IOV in the way and both intervals, unless `new` overlaps none of `neighbours`.

    Of a list without overlaps the neighbours that matter are the last IOV that starts at or before the start of `new`
    and the first one that starts after it.
    """
    for neighbour in neighbours:
        if new.overlaps(neighbour.interval):
            raise OverlapError(
                f"The interval {new} overlaps {neighbour.interval} of payload IOV {neighbour.id} ({neighbour.payload_url})."
            )
