"""The log of clients: a record for each request, and descriptions of dropped and wrong responses."""

import time
from collections import Counter
from collections.abc import Callable
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

    def add(self, send: Callable[[], Response], check: Callable[[Response], str | None]) -> bool:
        """Send a request once and record its outcome. Returns whether it got the correct response."""
        begin = time.monotonic()
        try:
            response = send()
            # A response that is not JSON comes from a proxy, or was cut.
            _ = response.json
        except (DroppedError, ValueError) as error:
            self.record(begin, DROPPED, str(error))
            return False
        outcome, fault = REFUSED if response.is_refusal else WRONG, None
        try:
            if response.status == 200:
                fault = check(response)
                outcome = WRONG if fault else ANSWERED
        except (KeyError, TypeError, IndexError, ValueError) as error:
            fault = f"not of the expected form: {error!r}"
        if outcome is WRONG and not fault:
            fault = f"status {response.status}: {response.body[:200]!r}"
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
