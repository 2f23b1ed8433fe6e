"""The expected responses. Each check returns a description of what is wrong with a response, or None."""

import random
from collections import Counter
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cdb_rest.rules.moment import Moment
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.client import Response, lookup_path
from loadtests.content.expected import Expected, insert_body, row_of
from loadtests.content.starts import unpacked


class FrozenTag:
    """A tag that never changes, with the rows of a scenario (random layout, seed 1): each lookup has one correct body."""

    def __init__(self, name: str, scenario: str) -> None:
        self.name = name
        self._scenario = SCENARIOS[scenario]
        self.items = {
            "payload_lists_count": self._scenario.payload_types,
            "payload_iov_count": self._scenario.iovs,
            "status": "frozen",
        }

    @cached_property
    def _expected(self) -> Expected:
        """Created in each process, because a file mapped into memory cannot be sent to another one."""
        return Expected(self._scenario.name, "random", 1, tag=self.name)

    def random_lookup(self) -> tuple[str, Moment]:
        """The path of a lookup at the start of a random row, and its moment; in time every row is requested."""
        moment = unpacked(random.choice(random.choice(self._expected.starts.starts)))
        return lookup_path(self.name, moment), moment

    def check(self, moment: Moment, response: Response) -> str | None:
        """Compare a response with the expected bytes."""
        return None if response.body == self._expected.body(moment, False) else str(response.body[:200])


@dataclass(frozen=True)
class WrittenTag:
    """A tag with a list for each writer, which appends rows 0, 1, 2…; row n is valid from the moment (n, 0).

    `attempted` and `acknowledged` have the last number of each writer, -1 if there is none, in memory that all
    processes share. Writers set `attempted` before they send a row, and `acknowledged` after its response.
    """

    name: str
    attempted: MutableSequence[int]
    acknowledged: MutableSequence[int]

    def payload_type(self, writer: int) -> str:
        """The payload type of a writer's rows."""
        return f"{self.name}-{writer:02d}"

    def row(self, writer: int, number: int) -> dict[str, Any]:
        """The row as the body of an insert."""
        return insert_body(self.name, self.payload_type(writer), number, (number, 0))

    def path(self, major: int) -> str:
        """The path of the lookup at (major, 0)."""
        return lookup_path(self.name, (major, 0))

    def check(self, major: int, oldest: Sequence[int], response: Response) -> str | None:
        """Check that each writer's row is between that acknowledged before (`oldest`) and that attempted by now."""
        newest = list(self.attempted)
        found = {row[0]: row for row in response.json}
        if len(found) != len(response.json) or not set(found) <= {self.payload_type(w) for w in range(len(newest))}:
            return f"unknown or repeated payload types: {str(response.json)[:200]}"
        for writer, (least, most) in enumerate(zip(oldest, newest, strict=True)):
            least, most = min(least, major), min(most, major)
            row = found.get(self.payload_type(writer))
            possible = [row_of(self.row(writer, number)) for number in range(max(least, 0), most + 1)]
            if row is None and least < 0:
                continue
            if row not in possible:
                return f"{row}, but number {least} was acknowledged before and {most} is the last"
        return None

    def lost(self, document: dict[str, Any]) -> list[str]:
        """The faults in a nested document: missing acknowledged rows, and rows that occur twice or were never sent."""
        found = {
            payload_list["payload_type"]: Counter(row["payload_url"] for row in payload_list["payload_iov"])
            for payload_list in document["payload_lists"]
        }
        faults = []
        for writer, (least, most) in enumerate(zip(self.acknowledged, self.attempted, strict=True)):
            kind = self.payload_type(writer)
            urls = found.pop(kind, Counter())
            faults += [f"{kind}/{number} is lost" for number in range(least + 1) if f"{kind}/{number}" not in urls]
            faults += [f"{url} is there {count} times" for url, count in urls.items() if count > 1]
            faults += [
                f"{url} was never sent" for url in set(urls) - {f"{kind}/{number}" for number in range(most + 1)}
            ]
        return faults + [f"{kind} is unknown" for kind in found]
