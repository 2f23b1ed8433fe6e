"""The expected responses. Each check returns a description of what is wrong with a response, or None."""

import random
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from loadtests.client import Response, lookup_path

OPEN = 2**63 - 1
# The members of a row of a nested document, in the order of a lookup.
COLUMNS = ("payload_url", "checksum", "size", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end", "revision")


class FrozenTag:
    """A tag that never changes: every response follows from its nested document, and has the same bytes each time."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.name = document["name"]
        self.items = {"payload_lists_count": len(document["payload_lists"]), "payload_iov_count": 0}
        self._lists = []
        for payload_list in sorted(document["payload_lists"], key=lambda one: one["payload_type"]):
            rows = sorted(payload_list["payload_iov"], key=lambda row: (row["major_iov"], row["minor_iov"]))
            self.items["payload_iov_count"] += len(rows)
            starts = [(row["major_iov"], row["minor_iov"]) for row in rows]
            self._lists.append((payload_list["payload_type"], starts, rows))
        self._seen: dict[str, bytes] = {}

    def random_lookup(self) -> tuple[str, tuple[int, int]]:
        """The path of a lookup at the start of a random row, and its moment; in time every row is requested."""
        _, starts, _ = random.choice(self._lists)
        moment = random.choice(starts)
        return lookup_path(self.name, moment), moment

    def check(self, path: str, moment: tuple[int, int], response: Response) -> str | None:
        """Compare a response with the document, and its bytes with those of the first response."""
        expected = []
        for name, starts, rows in self._lists:
            place = bisect_right(starts, moment)
            if place:
                expected.append([name, *(rows[place - 1][key] for key in COLUMNS)])
        if response.json != expected:
            return f"{path}: {str(response.json)[:200]}"
        if self._seen.setdefault(path, response.body) != response.body:
            return f"{path}: bytes differ from those of the first response"
        return None


class WrittenTag:
    """A tag with a list for each writer, which appends rows 0, 1, 2…; row n is valid from the moment (n, 0).

    `attempted` and `acknowledged` have the last number of each writer, -1 if there is none, in memory that all
    processes share. Writers set `attempted` before they send a row, and `acknowledged` after its response.
    """

    def __init__(self, name: str, attempted: Sequence[int], acknowledged: Sequence[int]) -> None:
        self.name = name
        self.attempted = attempted
        self.acknowledged = acknowledged

    def payload_type(self, writer: int) -> str:
        """The payload type of a writer's rows."""
        return f"{self.name}-{writer:02d}"

    def row(self, writer: int, number: int) -> dict[str, Any]:
        """The row as the body of an insert."""
        kind = self.payload_type(writer)
        place = {"global_tag": self.name, "payload_type": kind, "since": [number, 0], "until": "next"}
        return place | {"payload_url": f"{kind}/{number}", "checksum": f"{number:x}", "size": number}

    def expected_row(self, writer: int, number: int) -> list[Any]:
        """The row as a lookup returns it."""
        kind = self.payload_type(writer)
        return [kind, f"{kind}/{number}", f"{number:x}", number, number, 0, OPEN, OPEN, None]

    def path(self, major: int) -> str:
        """The path of the lookup at (major, 0)."""
        return lookup_path(self.name, (major, 0))

    def check(self, major: int, oldest: Sequence[int], response: Response) -> str | None:
        """Check that each writer's row is between that acknowledged before (`oldest`) and that attempted by now."""
        newest = list(self.attempted)
        found = {row[0]: row for row in response.json}
        if len(found) != len(response.json) or not set(found) <= {self.payload_type(w) for w in range(len(newest))}:
            return f"{self.path(major)}: unknown or repeated payload types: {str(response.json)[:200]}"
        for writer, (least, most) in enumerate(zip(oldest, newest, strict=True)):
            least, most = min(least, major), min(most, major)
            row = found.get(self.payload_type(writer))
            possible = [self.expected_row(writer, number) for number in range(max(least, 0), most + 1)]
            if row is None and least < 0:
                continue
            if row not in possible:
                return f"{self.path(major)}: {row}, but number {least} was acknowledged before and {most} is the last"
        return None

    def lost(self, document: dict[str, Any]) -> list[str]:
        """The faults in a nested document: missing acknowledged rows, and rows that occur twice or were never sent."""
        found: dict[str, list[str]] = {}
        for payload_list in document["payload_lists"]:
            urls = [row["payload_url"] for row in payload_list["payload_iov"]]
            found[payload_list["payload_type"]] = urls
        faults = []
        for writer, (least, most) in enumerate(zip(self.acknowledged, self.attempted, strict=True)):
            kind = self.payload_type(writer)
            urls = found.pop(kind, [])
            faults += [f"{kind}/{number} is lost" for number in range(least + 1) if f"{kind}/{number}" not in urls]
            faults += [f"{url} is there {urls.count(url)} times" for url in set(urls) if urls.count(url) > 1]
            sent = {f"{kind}/{number}" for number in range(most + 1)}
            faults += [f"{url} was never sent" for url in set(urls) - sent]
        return faults + [f"{kind} is unknown" for kind in found]
