"""What the campaign growth inserts, and what lookups then have to answer: the same for the same number, everywhere.

IOVs are numbered from 0 on. Each starts at a place of its own, far from that of the number before it, so that most of them go in
between others, and is valid until the next start in its list: the end that is stored is open. What the tag answers follows from
how many there are, in whatever order they came.
"""

from bisect import bisect_right, insort
from typing import Any

from cdb_rest.domain.moment import END_OF_TIME

TYPES = 10
MOMENTS = 2**31
# Odd, so that no two of the first 2^31 numbers have one place; near the golden section of them, so that they are spread evenly.
STEP = 1_327_217_885
# Stored as text: existing clients read it as a number.
REVISION = "1"


def type_of(number: int) -> str:
    """The payload type that an IOV belongs to: they take turns."""
    return f"Growth_{number % TYPES:02d}"


def start_of(number: int) -> tuple[int, int]:
    """The moment from which on an IOV is valid."""
    return number * STEP % MOMENTS, number


def row_to_insert(tag: str, number: int) -> dict[str, Any]:
    """What `payload-iovs/insert` is sent for an IOV."""
    return {
        "global_tag": tag,
        "payload_type": type_of(number),
        "since": start_of(number),
        "until": "next",
        **_payload(number),
    }


def _payload(number: int) -> dict[str, Any]:
    kind = type_of(number)
    return {
        "payload_url": f"{kind}/{number:08d}.root",
        "checksum": f"{number:032x}",
        "size": number,
        "revision": REVISION,
    }


class Content:
    """What is in the tag when the first `count` IOVs are."""

    def __init__(self, count: int) -> None:
        self._lists: dict[str, list[tuple[tuple[int, int], int]]] = {}
        for number in range(count):
            insort(self._lists.setdefault(type_of(number), []), (start_of(number), number))

    def at(self, major: int, minor: int) -> list[list[Any]]:
        """The answer to a lookup, as it is sent."""
        return [row for _, rows in sorted(self._lists.items()) for row in self._valid(rows, (major, minor))]

    @staticmethod
    def _valid(rows: list[tuple[tuple[int, int], int]], moment: tuple[int, int]) -> list[list[Any]]:
        after = bisect_right(rows, moment, key=lambda row: row[0])
        if not after:
            return []
        start, number = rows[after - 1]
        payload = _payload(number)
        return [
            [type_of(number), payload["payload_url"], payload["checksum"], number, *start, *END_OF_TIME, REVISION]
        ]  # fmt: skip
