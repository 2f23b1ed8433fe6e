"""The report of `make chaos`: one row for each fault, computed from the logs of the clients, and a plot."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from loadtests.chaos.log import ANSWERED, DROPPED, REFUSED, WRONG, Log
from loadtests.chaos.stage import Fault
from loadtests.reporting import machine
from loadtests.reporting.plots import COLOURS, blank, scales
from loadtests.reporting.report import Report, notes
from loadtests.reporting.result import Plot, Result, Table

RECOVERY_SECONDS = 2.0
# The duration of faults that do not end by themselves, from which on a run allows a verdict.
FREEZE_SECONDS = 30.0
COLUMNS = ("fault", "requests", "answered", "504", "dropped", "wrong", "lost", "reconnected", "slowest", "recovery")


@dataclass(frozen=True)
class Played:
    """The results of a fault.

    `log` has those of the clients. `began` and `returned` are when the fault began and when the failed component was
    back, by `time.monotonic`. `lost` describes rows that are lost, `skipped` is the reason why the fault could not be
    injected.
    """

    fault: Fault
    log: Log
    began: float = 0.0
    returned: float = 0.0
    lost: Sequence[str] = ()
    skipped: str = ""

    @cached_property
    def cells(self) -> dict[str, Any]:
        """The values of the columns, as templates/notes/chaos.md describes them, and of the fault; times in seconds.

        `recovery` is 0 if no request was unsuccessful after the return.
        """
        log = self.log
        counts = Counter(record.outcome for record in log.records) + log.counted
        late = [record.begin - self.returned for record in log.records if record.outcome != ANSWERED]
        whole = [record.end - record.begin for record in log.records if record.outcome != DROPPED]
        return {
            "fault": self.fault.name,
            "what": self.fault.what,
            "since": self.fault.since,
            "requests": counts.total(),
            **{outcome: counts[outcome] for outcome in (ANSWERED, REFUSED, DROPPED, WRONG)},
            "lost": len(self.lost),
            "reconnected": log.reconnected,
            "slowest": round(max([log.slowest, *whole]), 2),
            "recovery": round(max([0.0, *late]), 2),
            "skipped": self.skipped,
        }

    @property
    def is_good(self) -> bool:
        """Whether nothing was wrong or lost, no connection ended that had to last, and the service recovered in time."""
        cells, log = self.cells, self.log
        dropped = log.counted[DROPPED] + sum(
            record.outcome == DROPPED and not (self.fault.ends_connections and record.begin < self.returned)
            for record in log.records
        )
        return not (dropped or cells[WRONG] or cells["lost"]) and cells["recovery"] <= RECOVERY_SECONDS

    def __str__(self) -> str:
        text = self.skipped or ", ".join(f"{name} {self.cells[name]}" for name in COLUMNS[1:])
        messages = [*self.log.messages, *self.lost]
        return "\n    ".join([f"  {text}", *messages[:10]])


def table_of(played: Sequence[Played]) -> Table:
    """The table of the faults."""
    titles = tuple(f"{name} (s)" if name in ("slowest", "recovery") else name for name in COLUMNS)
    rows = []
    for one in played:
        cells = [one.cells[name] for name in COLUMNS]
        rows.append((cells[0], f"skipped: {one.skipped}", *[""] * (len(cells) - 2)) if one.skipped else tuple(cells))
    return Table("Effects on clients", titles, rows)


def too_short(seconds: float) -> list[str]:
    """A remark if the faults were shorter than the default."""
    return [] if seconds >= FREEZE_SECONDS else notes("chaos-short", seconds=seconds, least=FREEZE_SECONDS)


def write(directory: Path, played: Sequence[Played], seconds: float) -> None:
    """Write the report of the faults, `chaos.html`; nothing without faults."""
    if not played:
        return
    texts = [*too_short(seconds), *notes("chaos"), *notes("chaos-faults", played=played)]
    result = Result("chaos", "Faults", notes=texts, tables=[table_of(played)], raw=[one.cells for one in played])
    result.plots += [_plot(one) for one in played if one.log.records]
    facts = machine.facts(None, {"seconds of a fault": f"{seconds:g}"})
    Report("Faults under load", facts, [result], name="chaos").write(directory)


def _plot(one: Played) -> Plot:
    """Successful and failed requests per second against time; the fault is shaded."""
    first = min(record.begin for record in one.log.records)
    plot, axes = blank(f"{one.fault.name}: requests per second", height=2.4)
    for label, colour, is_answered in (("200", COLOURS[0], True), ("504 and others", COLOURS[1], False)):
        records = [record for record in one.log.records if (record.outcome == ANSWERED) is is_answered]
        ends = Counter(int(record.end - first) for record in records)
        seconds = range(max(ends, default=0) + 1)
        axes.step(seconds, [ends[at] for at in seconds], where="post", label=label, color=colour)
    end = max(one.returned, one.began + 0.1)
    axes.axvspan(one.began - first, end - first, color="black", alpha=0.1, linewidth=0)
    scales(axes, "s", "requests/s")
    return plot
