"""Whether an interval may enter a payload list."""

from collections.abc import Iterable
from dataclasses import dataclass

from cdb_rest.domain.errors import OverlapError
from cdb_rest.domain.moment import Interval, Moment


@dataclass(frozen=True, slots=True)
class PlacedIOV:
    """An IOV that is part of a list: what messages call it, and its interval."""

    name: str
    interval: Interval


def check_free(new: Interval, neighbours: Iterable[PlacedIOV]) -> None:
    """Raise `OverlapError`, naming the IOV in the way and both intervals, unless `new` overlaps none of `neighbours`.

    Of a list without overlaps the neighbours that matter are the last IOV that starts at or before the start of `new`
    and the first one that starts after it.
    """
    for neighbour in neighbours:
        if new.overlaps(neighbour.interval):
            raise OverlapError(f"The interval {new} overlaps {neighbour.interval} of {neighbour.name}.")


def check_keeps_defined(start: Moment, before: PlacedIOV | None, *, is_last: bool) -> None:
    """Raise `OverlapError` if an IOV from `start` to the next start of its list would change what is defined there.

    `before` is the last IOV that starts before it; `is_last` says that none starts after it. A list whose last IOV is open
    may be carried on by a later open one, as online running does.
    """
    if before is None or not before.interval.contains(start):
        return
    if is_last and before.interval.is_open:
        return
    raise OverlapError(
        f"Moment {start} lies in {before.interval} of {before.name}, "
        "and what is defined in a protected global tag stays."
    )
