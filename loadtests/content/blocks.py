"""The IOVs that users of load tests insert, the rows of lookups that return them, and the campaign growth.

In that campaign, all depends on the number of an IOV only. IOVs are numbered from 0. Each has its own start, far from
that of the previous number, so that most are inserted between others. It is valid until the next start in its list;
the stored end is open. The responses depend on the number of inserted IOVs, not on their order.
"""

from bisect import bisect_right, insort
from typing import Any

from cdb_rest.domain.moment import END_OF_TIME

TYPES = 10
MOMENTS = 2**31
# Odd, so that the first 2^31 numbers have different starts; near the golden section of 2^31, so that they are
# spread evenly.
STEP = 1_327_217_885
# Stored as text: existing clients read it as a number.
REVISION = "1"


def type_of(number: int) -> str:
    """The payload type of an IOV; the types alternate."""
    return f"Growth_{number % TYPES:02d}"


def start_of(number: int) -> tuple[int, int]:
    """The moment (major, minor) from which an IOV is valid."""
    return number * STEP % MOMENTS, number


def insert_body(tag: str, payload_type: str, number: int, since: tuple[int, int]) -> dict[str, Any]:
    """The body of `payload-iovs/insert` for an IOV with a number, valid from `since` until the next one."""
    place = {"global_tag": tag, "payload_type": payload_type, "since": list(since), "until": "next"}
    url = f"{payload_type}/{number}"
    return place | {"payload_url": url, "checksum": f"{number:032x}", "size": number, "revision": REVISION}


def row_of(body: dict[str, Any]) -> list[Any]:
    """The row of a lookup that returns an inserted IOV; its stored end is open, whatever follows it."""
    payload = [body[name] for name in ("payload_type", "payload_url", "checksum", "size")]
    return [*payload, *body["since"], *END_OF_TIME, body["revision"]]


def row_to_insert(tag: str, number: int) -> dict[str, Any]:
    """The body of `payload-iovs/insert` for an IOV of the campaign growth."""
    return insert_body(tag, type_of(number), number, start_of(number))


class Content:
    """The content of the tag after the first `count` IOVs were inserted."""

    def __init__(self, count: int) -> None:
        self._lists: dict[str, list[tuple[tuple[int, int], int]]] = {}
        for number in range(count):
            insort(self._lists.setdefault(type_of(number), []), (start_of(number), number))

    def at(self, major: int, minor: int) -> list[list[Any]]:
        """The expected response to a lookup."""
        response = []
        for _, rows in sorted(self._lists.items()):
            if after := bisect_right(rows, (major, minor), key=lambda row: row[0]):
                response.append(row_of(row_to_insert("", rows[after - 1][1])))
        return response
