"""The deterministic generator of a scenario's rows: the same scenario, layout and seed give the same rows everywhere.

Each payload type has its own random source, so that its rows can be generated without those of other types. In all
functions, `layout` is a key of `LAYOUTS`.
"""

import hashlib
import random
from collections.abc import Iterator
from typing import NamedTuple

from cdb_rest.rules.moment import Moment
from cdb_rest.scenarios.definitions import Scenario
from cdb_rest.scenarios.layouts import LAYOUTS, Intervals

REVISION = "1"


class Row(NamedTuple):
    """One payload IOV of a scenario. `end` is exclusive in both IOV modes, and `END_OF_TIME` for an open interval."""

    payload_url: str
    checksum: str
    size: int
    start: Moment
    end: Moment
    revision: str


def rows_of_type(scenario: Scenario, payload_type: str, *, layout: str, seed: int) -> Iterator[Row]:
    """The rows of one payload type of a scenario, ordered by start."""
    partial = partial_checksum(scenario, payload_type, layout=layout, seed=seed)
    for number, (start, end) in enumerate(intervals_of_type(scenario, payload_type, layout=layout, seed=seed)):
        url, checksum, size = payload(scenario, payload_type, partial, number)
        yield Row(url, checksum, size, start, end, REVISION)


def intervals_of_type(scenario: Scenario, payload_type: str, *, layout: str, seed: int) -> Intervals:
    """The start and end of each row of one payload type, ordered by start. Ends are as in `Row`."""
    source = random.Random(_origin(scenario, payload_type, layout, seed))  # noqa: S311 -- reproducible data, not secrets
    return LAYOUTS[layout](source, scenario, seed)


def partial_checksum(scenario: Scenario, payload_type: str, *, layout: str, seed: int) -> hashlib.blake2b:
    """A hash object that is the argument `partial` of `payload`, for all rows of the payload type.

    `payload` copies it, and completes the copy to the checksum of a row.
    """
    return hashlib.blake2b(f"{_origin(scenario, payload_type, layout, seed)}/".encode(), digest_size=16)


def payload(scenario: Scenario, payload_type: str, partial: hashlib.blake2b, number: int) -> tuple[str, str, int]:
    """URL, checksum and size in bytes of one row.

    `partial` is the result of `partial_checksum`; `number` counts the rows of the payload type from 0.
    """
    complete = partial.copy()
    complete.update(b"%d" % number)
    checksum = complete.hexdigest()
    url = f"{payload_type}/{scenario.name}/{number:06d}_{checksum[:8]}.root"
    return url, checksum, 1_000 + int(checksum[:5], 16)


def _origin(scenario: Scenario, payload_type: str, layout: str, seed: int) -> str:
    return f"{seed}/{scenario.name}/{layout}/{payload_type}"
