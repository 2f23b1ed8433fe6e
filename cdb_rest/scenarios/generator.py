"""The rows of a scenario: the same for the same scenario, layout and seed, on every machine.

Each payload type has a random stream of its own, so that the rows of one type can be made without those before it.
"""

import hashlib
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cdb_rest.domain.moment import END_OF_TIME, Moment
from cdb_rest.scenarios.definitions import Scenario, payload_type_names

# Moments of the random layout are drawn from 0…2^31-1, as the published study does.
RANDOM_MOMENTS = 2**31


class Row(NamedTuple):
    """One payload IOV of a scenario."""

    payload_url: str
    checksum: str
    size: int
    start: Moment
    end: Moment
    revision: str


def sequential(_: random.Random, count: int) -> Iterator[tuple[Moment, Moment]]:
    """Starts at majors 0, 1, 2…, each open, so that the next one ends it."""
    for major in range(count):
        yield Moment(major, 0), END_OF_TIME


def uniform(source: random.Random, count: int) -> Iterator[tuple[Moment, Moment]]:
    """Starts anywhere, no two alike, by time; each open."""
    starts: set[Moment] = set()
    while len(starts) < count:
        starts.add(Moment(source.randrange(RANDOM_MOMENTS), source.randrange(RANDOM_MOMENTS)))
    for start in sorted(starts):
        yield start, END_OF_TIME


# A layout says where the intervals of one payload type lie: from a random source and their number to starts and ends.
LAYOUTS: dict[str, Callable[[random.Random, int], Iterator[tuple[Moment, Moment]]]] = {
    "sequential": sequential,
    "random": uniform,
}


def rows(scenario: Scenario, *, layout: str, seed: int) -> Iterator[tuple[str, Iterator[Row]]]:
    """The payload types of a scenario and for each of them its rows, by start."""
    for name in payload_type_names(scenario.payload_types):
        yield name, rows_of_type(scenario, name, layout=layout, seed=seed)


def rows_of_type(scenario: Scenario, payload_type: str, *, layout: str, seed: int) -> Iterator[Row]:
    """The rows of one payload type of a scenario, by start."""
    origin = f"{seed}/{scenario.name}/{layout}/{payload_type}"
    source = random.Random(origin)  # noqa: S311 -- reproducible data, not secrets
    for number, (start, end) in enumerate(LAYOUTS[layout](source, scenario.iovs_per_type)):
        checksum = hashlib.blake2b(f"{origin}/{number}".encode(), digest_size=16).hexdigest()
        url = f"{payload_type}/{scenario.name}/{number:06d}_{checksum[:8]}.root"
        yield Row(url, checksum, 1_000 + int(checksum[:5], 16), start, end, "1")
