"""The report of `make chaos`: one row for each fault, computed from the logs of the clients, and a plot."""

import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from loadtests.chaos.log import ANSWERED, DROPPED, REFUSED, WRONG, Log
from loadtests.chaos.stage import Fault
from loadtests.reporting.plots import COLOURS
from loadtests.reporting.report import markdown_table, notes, write_csv
from loadtests.reporting.result import Plot, Table

RECOVERY_SECONDS = 2.0
# The duration of faults that do not end by themselves, from which on a run allows a verdict.
FREEZE_SECONDS = 30.0
COLUMNS = ("fault", "requests", "answered", "504", "dropped", "wrong", "lost", "reconnected", "slowest", "recovery")
PANELS = 3


@dataclass(frozen=True)
class Played:
    """The results of a fault.

    `log` has those of the clients. `began` and `returned` are when the fault began and when the failed component was
    back, by `time.monotonic`. `lost` describes rows that are lost, `replica_reads` are the reads from replicas by
    outcome. `skipped` is the reason why the fault could not be injected.
    """

    fault: Fault
    log: Log
    began: float = 0.0
    returned: float = 0.0
    lost: Sequence[str] = ()
    replica_reads: Counter[str] = field(default_factory=Counter)
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
        """Whether nothing was dropped, wrong or lost, and the service recovered in time."""
        cells = self.cells
        return not (cells[DROPPED] or cells[WRONG] or cells["lost"]) and cells["recovery"] <= RECOVERY_SECONDS

    @property
    def replica_text(self) -> str:
        """The reads from the replica by outcome: served, or left to the primary (behind, failed); empty without any."""
        counts = ", ".join(f"{outcome} {count:,}" for outcome, count in sorted(self.replica_reads.items()))
        return counts and f"reads from the replica: {counts}"

    def __str__(self) -> str:
        text = self.skipped or ", ".join(f"{name} {self.cells[name]}" for name in COLUMNS[1:])
        messages = [*self.log.messages, *self.lost]
        return "\n    ".join([f"  {text}", *filter(None, [self.replica_text]), *messages[:10]])


def text_of(played: Sequence[Played], seconds: float) -> str:
    """The table as Markdown, with times in seconds, and a remark if the faults were shorter than the default."""
    titles = tuple(f"{name} (s)" if name in ("slowest", "recovery") else name for name in COLUMNS)
    rows = [
        (one.fault.name, f"skipped: {one.skipped}") if one.skipped else tuple(one.cells[name] for name in COLUMNS)
        for one in played
    ]
    too_short = [] if seconds >= FREEZE_SECONDS else notes("chaos-short", seconds=seconds, least=FREEZE_SECONDS)
    return "\n\n".join([markdown_table(Table("", titles, rows)), *too_short])


def write(directory: Path, played: Sequence[Played], seconds: float) -> None:
    """Write the report of the faults as CSV, JSON, Markdown and SVG; nothing without faults."""
    if not played:
        return
    rows = [one.cells for one in played]
    write_csv(directory / "chaos.csv", rows)
    (directory / "chaos.json").write_text(json.dumps(rows, indent=2) + "\n")
    title = f"# Faults under load, {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}"
    faults = notes("chaos-faults", played=played)
    (directory / "chaos.md").write_text("\n\n".join([title, text_of(played, seconds), *notes("chaos"), *faults]) + "\n")
    (directory / "chaos.svg").write_text(Plot("Faults", _figure(played)).svg)


def _figure(played: list[Played]) -> Figure:
    """Successful and failed requests per second against time, with one panel for each fault."""
    shown = [one for one in played if one.log.records]
    rows = max(1, math.ceil(len(shown) / PANELS))
    figure = Figure(figsize=(12, 2.4 * rows), layout="constrained")
    grid = figure.subplots(rows, PANELS, squeeze=False)
    for one, axes in zip(shown, grid.flat, strict=False):
        _panel(axes, one)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    return figure


def _panel(axes: Axes, one: Played) -> None:
    records = one.log.records
    first = min(record.begin for record in records)
    seconds = range(int(max(record.end for record in records) - first) + 1)
    for label, colour, is_counted in (("200", COLOURS[0], True), ("504 and others", COLOURS[1], False)):
        ended = Counter(int(record.end - first) for record in records if (record.outcome == ANSWERED) is is_counted)
        counts = [ended[second] for second in seconds]
        axes.step(seconds, counts, where="post", label=label, color=colour, linewidth=1.2)
    axes.axvspan(one.began - first, max(one.returned, one.began + 0.1) - first, color="#000000", alpha=0.1, linewidth=0)
    axes.set_title(one.fault.name, loc="left", fontsize=9, fontweight="bold")
    axes.set_xlabel("s", fontsize=8)
    axes.set_ylabel("requests/s", fontsize=8)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7, frameon=False)
