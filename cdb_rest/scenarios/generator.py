"""The rows of a scenario: the same for the same scenario, layout and seed, on every machine.

Each payload type has a random stream of its own, so that the rows of one type can be made without those before it.
"""

import hashlib
import random
from collections.abc import Iterator
from typing import NamedTuple

from cdb_rest.domain.moment import Moment
from cdb_rest.scenarios.definitions import Scenario
from cdb_rest.scenarios.layouts import LAYOUTS, Intervals

REVISION = "1"


class Row(NamedTuple):
    """One payload IOV of a scenario."""

    payload_url: str
    checksum: str
    size: int
    start: Moment
    end: Moment
    revision: str


def rows_of_type(scenario: Scenario, payload_type: str, *, layout: str, seed: int) -> Iterator[Row]:
    """The rows of one payload type of a scenario, by start."""
    begun = begun_checksum(scenario, payload_type, layout=layout, seed=seed)
    for number, (start, end) in enumerate(intervals_of_type(scenario, payload_type, layout=layout, seed=seed)):
        url, checksum, size = payload(scenario, payload_type, begun, number)
        yield Row(url, checksum, size, start, end, REVISION)


def intervals_of_type(scenario: Scenario, payload_type: str, *, layout: str, seed: int) -> Intervals:
    """Starts and ends of the rows of a payload type alone, by start."""
    source = random.Random(_origin(scenario, payload_type, layout, seed))  # noqa: S311 -- reproducible data, not secrets
    return LAYOUTS[layout](source, scenario, seed)


def begun_checksum(scenario: Scenario, payload_type: str, *, layout: str, seed: int) -> hashlib.blake2b:
    """What the checksums of all rows of a payload type have in common, hashed already."""
    return hashlib.blake2b(f"{_origin(scenario, payload_type, layout, seed)}/".encode(), digest_size=16)


def payload(scenario: Scenario, payload_type: str, begun: hashlib.blake2b, number: int) -> tuple[str, str, int]:
    """URL, checksum and size (bytes) of a row, by its number among those of its type, from 0 on; no other row is needed."""
    whole = begun.copy()
    whole.update(b"%d" % number)
    checksum = whole.hexdigest()
    url = f"{payload_type}/{scenario.name}/{number:06d}_{checksum[:8]}.root"
    return url, checksum, 1_000 + int(checksum[:5], 16)


def _origin(scenario: Scenario, payload_type: str, layout: str, seed: int) -> str:
    return f"{seed}/{scenario.name}/{layout}/{payload_type}"
