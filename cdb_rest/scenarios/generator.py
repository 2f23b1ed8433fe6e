"""The rows of a scenario: the same for the same scenario, layout and seed, on every machine.

Each payload type has a random stream of its own, so that the rows of one type can be made without those before it.
"""

import hashlib
import random
from collections.abc import Iterator
from typing import NamedTuple

from cdb_rest.domain.moment import Moment
from cdb_rest.scenarios.definitions import Scenario
from cdb_rest.scenarios.layouts import LAYOUTS


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
    origin = f"{seed}/{scenario.name}/{layout}/{payload_type}"
    source = random.Random(origin)  # noqa: S311 -- reproducible data, not secrets
    for number, (start, end) in enumerate(LAYOUTS[layout](source, scenario, seed)):
        checksum = hashlib.blake2b(f"{origin}/{number}".encode(), digest_size=16).hexdigest()
        url = f"{payload_type}/{scenario.name}/{number:06d}_{checksum[:8]}.root"
        yield Row(url, checksum, 1_000 + int(checksum[:5], 16), start, end, "1")
