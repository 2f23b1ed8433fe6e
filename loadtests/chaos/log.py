"""The log of clients: a record for each request, and descriptions of dropped and wrong responses."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from loadtests.client import DroppedError, Response

ANSWERED, REFUSED, DROPPED, WRONG = "answered", "504", "dropped", "wrong"
MOST_MESSAGES = 20


class Record(NamedTuple):
    """One request: its begin and end, in seconds of the system's monotonic clock, and its outcome."""

    begin: float
    end: float
    outcome: str


@dataclass
class Log:
    """The results of the clients of a process.

    `counted` are counts by outcome of requests without a record, and `slowest` is the longest time of one of
    them in seconds.
    """

    records: list[Record] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    messages: list[str] = field(default_factory=list)
    reconnected: int = 0

    def add(
        self,
        send: Callable[[], Response],
        check: Callable[[Response], str | None] = lambda _: None,
        *,
        expected: Collection[int] = (200,),
        may_be_html: bool = False,
        what: str = "",
    ) -> bool:
        """Send a request once and record its outcome. Returns whether it got the correct response.

        That is one with an expected status whose content passes the check; `what` describes the request in messages.
        """
        begin = time.monotonic()
        try:
            response = send()
            # A response that is not JSON comes from a proxy, or was cut.
            if not may_be_html and (response.body or response.status == 200):
                _ = response.json
        except (DroppedError, ValueError) as error:
            self.record(begin, DROPPED, f"{what}{error}")
            return False
        outcome, fault = WRONG, f"{what}status {response.status}: {response.body[:200]!r}"
        try:
            if response.status in expected:
                fault = check(response)
                outcome = WRONG if fault else ANSWERED
            elif response.is_refusal:
                outcome, fault = REFUSED, None
        except (KeyError, TypeError, IndexError, ValueError) as error:
            fault = f"not of the expected form: {error!r}"
        self.record(begin, outcome, fault)
        return outcome is ANSWERED

    def record(self, begin: float, outcome: str, fault: str | None = None) -> None:
        """Record a request that ends now; `fault` describes what is wrong with it."""
        self.records.append(Record(begin, time.monotonic(), outcome))
        if fault and len(self.messages) < MOST_MESSAGES:
            self.messages.append(f"{outcome}: {fault}")

    def join(self, other: "Log") -> None:
        """Add the results of other clients."""
        self.records += other.records
        self.counted += other.counted
        self.slowest = max(self.slowest, other.slowest)
        self.messages += other.messages
        self.reconnected += other.reconnected
