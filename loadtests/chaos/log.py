"""The log of clients: a record for each request, and descriptions of dropped and wrong responses."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from loadtests.chaos.oracle import STALE, WRONG
from loadtests.client import Addresses, Client, DroppedError, Response
from loadtests.recording import OK, REFUSED, judged

ANSWERED, DROPPED = "answered", "dropped"
MOST_MESSAGES = 20


class Record(NamedTuple):
    """One request: its begin and end, in seconds of the system's monotonic clock, and its outcome."""

    begin: float
    end: float
    outcome: str


@dataclass
class Log:
    """The results of the clients of a process. `counted` are counts by outcome of requests without a record."""

    records: list[Record] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)
    reconnected: int = 0

    def add(
        self,
        client: Client | Addresses,
        method: str,
        path: str,
        body: Any = None,
        check: Callable[[Response], str | None] = lambda _: None,
        accepted: Sequence[int] = (200,),
        **headers: str,
    ) -> bool:
        """Send a request once and record its outcome. Returns whether its status is accepted and the content passes the check."""
        begin, before = time.monotonic(), client.reconnected
        try:
            response = client.request(method, path, body, **headers)
            # A response that is not JSON comes from a proxy, or was cut.
            _ = response.json
            found, fault = judged(response.status, response.body, accepted, lambda: check(response))
            is_refusal = found == REFUSED and response.is_refusal
            kind = STALE if fault.startswith(STALE) else WRONG
            outcome = ANSWERED if found == OK else REFUSED if is_refusal else kind
        except (DroppedError, ValueError) as error:
            outcome, fault = DROPPED, str(error)
        self.reconnected += client.reconnected - before
        where = f"{method} {client.host} {path} {headers or ''}"
        self.record(begin, outcome, "" if outcome in (ANSWERED, REFUSED) else f"{where}: {fault}")
        return outcome is ANSWERED

    def record(self, begin: float, outcome: str, fault: str | None) -> None:
        """Record a request that ends now; `fault` describes what is wrong with it."""
        self.records.append(Record(begin, time.monotonic(), outcome))
        if fault and len(self.messages) < MOST_MESSAGES:
            self.messages.append(f"{outcome}: {fault}")

    def join(self, other: "Log") -> None:
        """Add the results of other clients."""
        self.records += other.records
        self.counted += other.counted
        self.messages += other.messages
        self.reconnected += other.reconnected
