"""The expected responses. Each check returns a description of what is wrong with a response, or None."""

import random
from collections import Counter
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cdb_rest.rules.moment import Moment
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.client import Response, lookup_path
from loadtests.content.expected import Expected, insert_body, row_of
from loadtests.content.starts import unpacked

# How the description of a fault begins: the response is older than what was acknowledged, or was never right.
STALE, WRONG = "stale", "wrong"
NEVER = 2**62
FREEZES, ALL = 1, 2


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
class Seen:
    """A copy of the arrays of a `WrittenTag`. `newest` has the last row of each writer that was acknowledged or shown."""

    newest: Sequence[int]
    survived: Sequence[int]
    gone: Sequence[int]

    def remaining(self, writer: int, number: int) -> int:
        """The last row up to this number that surely survived a failover."""
        return min(number, self.survived[writer]) if number <= self.gone[writer] else number

    def is_gone(self, writer: int, number: int) -> bool:
        """Whether a failover has lost this row."""
        return self.survived[writer] < number <= self.gone[writer] < NEVER


@dataclass(frozen=True)
class WrittenTag:
    """A tag with a list for each writer, which appends rows 0, 1, 2…; row n is valid from the moment (n, 0).

    `attempted` and `acknowledged` have the last number of each writer, -1 if there is none, in memory that all
    processes share. Writers set `attempted` before they send a row, and `acknowledged` after its response. `shown` has the
    newest rows in any response.

    A failover of asynchronous replication loses the rows of a writer after `survived` up to `gone`, which are `NEVER`
    otherwise. As long as only `survived` is known, later rows may be lost or not. While `paused` is `FREEZES`, no tag is
    frozen; while it is `ALL`, no client writes. `frozen` has the number of the last tag that each freezer has frozen.
    """

    name: str
    attempted: MutableSequence[int]
    acknowledged: MutableSequence[int]
    shown: MutableSequence[int]
    survived: MutableSequence[int]
    gone: MutableSequence[int]
    paused: MutableSequence[int]
    frozen: MutableSequence[int]

    @classmethod
    def create(cls, name: str, writers: int, array: Callable[[Sequence[int]], MutableSequence[int]]) -> "WrittenTag":
        """A tag without rows; `array` makes an array in shared memory."""
        arrays = (array([value] * writers) for value in (-1, -1, -1, NEVER, NEVER))
        return cls(name, *arrays, array([0]), array([-1] * writers))

    def seen(self) -> "Seen":
        """What is known now: a response to a later request must not be older."""
        newest = list(map(max, self.acknowledged, self.shown))
        return Seen(newest, list(self.survived), list(self.gone))

    def payload_type(self, writer: int) -> str:
        """The payload type of a writer's rows."""
        return f"{self.name}-{writer:02d}"

    def row(self, writer: int, number: int) -> dict[str, Any]:
        """The row as the body of an insert."""
        return insert_body(self.name, self.payload_type(writer), number, (number, 0))

    def path(self, major: int) -> str:
        """The path of the lookup at (major, 0)."""
        return lookup_path(self.name, (major, 0))

    def check(self, major: int, seen: "Seen", response: Response) -> str | None:
        """Check that each writer's row is between the newest one before the request (`seen`) and that attempted by now."""
        newest, now = list(self.attempted), self.seen()
        found = {row[0]: row for row in response.json}
        if len(found) != len(response.json) or not set(found) <= {self.payload_type(w) for w in range(len(newest))}:
            return f"unknown or repeated payload types: {str(response.json)[:200]}"
        for writer, (least, most) in enumerate(zip(seen.newest, newest, strict=True)):
            least, most = now.remaining(writer, min(least, major)), min(most, major)
            row = found.get(self.payload_type(writer))
            numbers = [number for number in range(max(least, 0), most + 1) if not seen.is_gone(writer, number)]
            if row is None and least < 0:
                continue
            if row not in [row_of(self.row(writer, number)) for number in numbers]:
                kind = STALE if row is None or row[3] < least else WRONG
                return f"{kind}: {row}, but number {least} was there before and {most} is the last"
            self.shown[writer] = max(self.shown[writer], row[3])
        return None

    def check_count(self, seen: "Seen", count: int) -> str | None:
        """Check a number of rows as `check` does rows."""
        now, numbers = self.seen(), range(len(self.attempted))
        newest = sum(number + 1 for number in self.attempted)
        least = sum(
            number + 1 - max(0, min(number, now.gone[writer]) - now.survived[writer])
            for writer, number in zip(numbers, seen.newest, strict=True)
        )
        kind = STALE if count < least else WRONG
        return None if least <= count <= newest else f"{kind}: {count} rows, not from {least} to {newest}"

    def frozen_tag(self, freezer: int, number: int) -> str:
        """The name of a tag that a client freezes."""
        return f"{self.name}-{freezer}-{number}"

    def lost(self, document: dict[str, Any], statuses: dict[str, str]) -> list[str]:
        """What is wrong at the end: acknowledged rows and freezes that are missing, rows that occur twice or were never sent.

        `document` is the nested tag, `statuses` has the status of each tag.
        """
        found = {
            payload_list["payload_type"]: Counter(row["payload_url"] for row in payload_list["payload_iov"])
            for payload_list in document["payload_lists"]
        }
        faults, seen = [], self.seen()
        for writer, (least, most) in enumerate(zip(self.acknowledged, self.attempted, strict=True)):
            kind = self.payload_type(writer)
            urls = found.pop(kind, Counter())
            gone = {f"{kind}/{number}" for number in range(least + 1) if seen.is_gone(writer, number)}
            faults += [
                f"{kind}/{number} is lost" for number in range(least + 1) if f"{kind}/{number}" not in set(urls) | gone
            ]
            faults += [f"{url}, which was lost, is back" for url in gone & set(urls)]
            faults += [f"{url} is there {count} times" for url, count in urls.items() if count > 1]
            faults += [
                f"{url} was never sent" for url in set(urls) - {f"{kind}/{number}" for number in range(most + 1)}
            ]
        names = [
            self.frozen_tag(freezer, number) for freezer, last in enumerate(self.frozen) for number in range(last + 1)
        ]
        faults += [f"the freeze of {name} is lost" for name in names if statuses.get(name) != "frozen"]
        return faults + [f"{kind} is unknown" for kind in found]
