"""The report of `make chaos`: one row for each fault, computed from the logs of the clients, and a plot."""

import json
import math
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from loadtests.chaos.log import ANSWERED, DROPPED, REFUSED, WRONG, Log, Record
from loadtests.reporting.plots import COLOURS, drawn
from loadtests.reporting.report import markdown_table, write_csv
from loadtests.reporting.result import Table

RECOVERY_SECONDS = 2.0
# The duration of faults that do not end by themselves, from which on a run allows a verdict.
FREEZE_SECONDS = 30.0
COLUMNS = ("fault", "requests", "answered", "504", "dropped", "wrong", "lost", "reconnected", "slowest", "recovery")
PANELS = 3
EXPLANATION = """\
Clients send requests before, during and after each fault. Readers, half of them with a new connection for each
request, check every response; writers retry a row with its idempotency key until it is acknowledged. The
columns: 504 is a JSON response with Retry-After; dropped is a connection that was refused, reset or cut, or a
response that is not JSON; wrong is any other status, or wrong content; lost is an acknowledged row that is
missing at the end or exists twice; reconnected is an idle connection that was closed between two requests.
slowest is the longest time until a response of any status. recovery is the time from the return of the failed
component to the begin of the last unsuccessful request.
"""


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


@dataclass(frozen=True)
class Played:
    """The results of a fault.

    `row` is its row of the table, `records` are the requests. `began` and `returned` are when the fault began
    and when the failed component was back, by `time.monotonic`. `messages` describe faulty responses,
    `replica_reads` are the reads from replicas by outcome.
    """

    row: Row
    records: list[Record] = field(default_factory=list)
    began: float = 0.0
    returned: float = 0.0
    messages: list[str] = field(default_factory=list)
    replica_reads: Counter[str] = field(default_factory=Counter)

    @property
    def replica_text(self) -> str:
        """The reads from the replica by outcome: served, or left to the primary (behind, failed); empty without any."""
        counts = ", ".join(f"{outcome} {count:,}" for outcome, count in sorted(self.replica_reads.items()))
        return counts and f"reads from the replica: {counts}"

    def __str__(self) -> str:
        cells = self.row.cells()
        text = self.row.skipped or ", ".join(f"{name} {cells[name]}" for name in COLUMNS[1:])
        details = [*filter(None, [self.replica_text]), *self.messages[:10]]
        return "\n    ".join([f"  {text}", *details])


def judge(row: Row, log: Log, *, returned: float, lost: int) -> Row:
    """The row with the results of the clients; the failed component was back at `returned` (`time.monotonic`)."""
    counts = Counter(record.outcome for record in log.records) + log.counted
    late = [record.begin - returned for record in log.records if record.outcome != ANSWERED]
    whole = [record.end - record.begin for record in log.records if record.outcome != DROPPED]
    found = {"answered": ANSWERED, "refused": REFUSED, "dropped": DROPPED, "wrong": WRONG}
    times = {"slowest": round(max([log.slowest, *whole]), 2), "recovery": round(max([0.0, *late]), 2)}
    outcomes = {name: counts[outcome] for name, outcome in found.items()}
    return replace(row, requests=counts.total(), lost=lost, reconnected=log.reconnected, **outcomes, **times)


def table(rows: list[Row]) -> str:
    """The rows as Markdown; times in seconds."""
    titles = tuple(f"{name} (s)" if name in ("slowest", "recovery") else name for name in COLUMNS)
    lines = []
    for row in rows:
        cells = [row.cells()[name] for name in COLUMNS]
        shown = tuple(f"{value:,}" if isinstance(value, int) else str(value) for value in cells)
        lines.append((row.fault, f"skipped: {row.skipped}") if row.skipped else shown)
    return markdown_table(Table("", titles, lines))


def text_of(played: list[Played], seconds: float) -> str:
    """The table, with a remark if the faults were shorter than the default."""
    rows = table([one.row for one in played])
    if seconds >= FREEZE_SECONDS:
        return rows
    return (
        f"{rows}\n\nToo short for a verdict: the faults lasted {seconds:g} s instead of {FREEZE_SECONDS:g} s. Requests that are "
        "dropped, wrong or lost show a fault of the service. A run without them does not show that the service withstands "
        "longer faults.\n"
    )


def write(directory: Path, played: list[Played], seconds: float) -> None:
    """Write the report of the faults as CSV, JSON, Markdown and SVG; nothing without faults."""
    if not played:
        return
    rows = [one.row.cells() for one in played]
    write_csv(directory / "chaos.csv", rows)
    (directory / "chaos.json").write_text(json.dumps(rows, indent=2) + "\n")
    since = "\n".join(
        f"- {one.row.fault}: {one.row.what}; recovery counts from: {one.row.since}."
        + (f" {one.replica_text.capitalize()}." if one.replica_text else "")
        for one in played
    )
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    report = f"# Faults under load, {date}\n\n{text_of(played, seconds)}\n{EXPLANATION}\n{since}\n"
    (directory / "chaos.md").write_text(report)
    (directory / "chaos.svg").write_text(drawn("Faults", lambda: _figure(played)).svg)


def _figure(played: list[Played]) -> Figure:
    """Successful and failed requests per second against time, with one panel for each fault."""
    shown = [one for one in played if one.records]
    rows = max(1, math.ceil(len(shown) / PANELS))
    figure, grid = pyplot.subplots(rows, PANELS, figsize=(12, 2.4 * rows), squeeze=False, layout="constrained")
    for one, axes in zip(shown, grid.flat, strict=False):
        _panel(axes, one)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    return figure


def _panel(axes: Axes, one: Played) -> None:
    first = min(record.begin for record in one.records)
    seconds = range(int(max(record.end for record in one.records) - first) + 1)
    for label, colour, is_counted in (("200", COLOURS[0], True), ("504 and others", COLOURS[1], False)):
        ended = Counter(int(record.end - first) for record in one.records if (record.outcome == ANSWERED) is is_counted)
        counts = [ended[second] for second in seconds]
        axes.step(seconds, counts, where="post", label=label, color=colour, linewidth=1.2)
    axes.axvspan(one.began - first, max(one.returned, one.began + 0.1) - first, color="#000000", alpha=0.1, linewidth=0)
    axes.set_title(one.row.fault, loc="left", fontsize=9, fontweight="bold")
    axes.set_xlabel("s", fontsize=8)
    axes.set_ylabel("requests/s", fontsize=8)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7, frameon=False)
