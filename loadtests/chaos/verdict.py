"""The table of the report: one row for each fault, computed from the logs of the clients."""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

from loadtests.chaos.clients import ANSWERED, DROPPED, REFUSED, WRONG, Log
from loadtests.reporting.report import markdown_table
from loadtests.reporting.result import Table

RECOVERY_SECONDS = 2.0


@dataclass(frozen=True)
class Row:
    """The outcome of the requests of one fault.

    `recovery` is the time in seconds from the return of the failed component to the begin of the last
    unsuccessful request; 0 if there is none. `slowest` is the longest time in seconds until a complete response
    of any status. `reconnected` counts idle connections that were closed before the next request, which HTTP
    allows.
    """

    fault: str
    what: str
    since: str
    requests: int = 0
    answered: int = 0
    refused: int = 0
    dropped: int = 0
    wrong: int = 0
    lost: int = 0
    reconnected: int = 0
    slowest: float = 0.0
    recovery: float = 0.0
    skipped: str = ""

    @property
    def is_good(self) -> bool:
        """Whether nothing was dropped, wrong or lost, and the service recovered in time."""
        return not (self.dropped or self.wrong or self.lost) and self.recovery <= RECOVERY_SECONDS

    def cells(self) -> dict[str, Any]:
        """The values of the row by column."""
        return {"504" if name == "refused" else name: value for name, value in asdict(self).items()}


def judge(row: Row, log: Log, *, returned: float, lost: int) -> Row:
    """The row with the results of the clients; the failed component was back at `returned` (`time.monotonic`)."""
    counts = Counter(record.outcome for record in log.records) + log.counted
    late = [record.begin - returned for record in log.records if record.outcome != ANSWERED]
    whole = [record.end - record.begin for record in log.records if record.outcome != DROPPED]
    return replace(
        row,
        requests=counts.total(),
        answered=counts[ANSWERED],
        refused=counts[REFUSED],
        dropped=counts[DROPPED],
        wrong=counts[WRONG],
        lost=lost,
        reconnected=log.reconnected,
        slowest=round(max([log.slowest, *whole]), 2),
        recovery=round(max([0.0, *late]), 2),
    )


COLUMNS = ("fault", "requests", "answered", "504", "dropped", "wrong", "lost", "reconnected", "slowest", "recovery")


def table(rows: list[Row]) -> str:
    """The rows as Markdown; times in seconds."""
    titles = tuple(f"{name} (s)" if name in ("slowest", "recovery") else name for name in COLUMNS)
    lines = [
        (row.fault, f"skipped: {row.skipped}") if row.skipped else tuple(_shown(row.cells()[name]) for name in COLUMNS)
        for row in rows
    ]
    return markdown_table(Table("", titles, lines))


def _shown(value: float | str) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
