"""What a campaign hands to the report."""

from dataclasses import dataclass, field
from typing import Any

from loadtests.recording.reading import Recording
from loadtests.reporting.result import Plot, Table, Target


@dataclass(frozen=True)
class Signals:
    """What was seen of the server meanwhile: rows with `time` (seconds since the epoch) and any of these columns.

    Of processes: `cpu.<program>.user` and `.system` in cores, `memory.<program>` in bytes (what is resident and its own; pages of
    a parent that were not written since count for each; PostgreSQL's shared memory counts once), `files.<program>`,
    `threads.<program>`, `processes.<program>`. Programs are nginx, gunicorn-lookups, gunicorn-others (gunicorn with `run`),
    pgbouncer, postgres, serve, generator, rig, and for CPU also other, all that is left.
    Of the machine: `cpu.machine` in cores, `disk.read`, `disk.write`, `network.sent`, `network.received` in bytes a second,
    `disk.busy` and what else `loadtests/signals/machine.py` names.
    Of PostgreSQL: `connections.<state>`, and of the active ones `waits.<type>:<event>`, or `waits.none` for those that compute.
    Of the service: `in_progress.<pool>`, `pgbouncer.clients.waiting`, and a second `answers.<status>`, `errors.<code>`,
    `refusals.<pool>`, `lookups.reached`, `.started`, `.finished`, and what else `loadtests/signals/counts.py` names.
    A sample that could not be had is left out.
    """

    rows: list[dict[str, float]] = field(default_factory=list)

    def column(self, name: str) -> tuple[list[float], list[float]]:
        """Times and values of a column, where it is there."""
        found = [(row["time"], row[name]) for row in self.rows if name in row]
        return [when for when, _ in found], [value for _, value in found]


@dataclass(frozen=True)
class Run:
    """Load under one label: what was recorded, the server's signals, and by how much its counters rose, by the name and labels
    that Prometheus knows (`cdb_requests_total{method="GET",…}`); without `detailed` the report has one line of it in a table.
    `settings` are what the generator was told, as text by name; they are empty where nobody knows."""

    label: str
    recording: Recording
    signals: Signals = field(default_factory=Signals)
    counters: dict[str, float] = field(default_factory=dict)
    detailed: bool = True
    settings: dict[str, str] = field(default_factory=dict)


@dataclass
class Findings:
    """`summary` is the one sentence with the one number; `figures` are what `compare` compares: named figures (with their unit,
    such as "tiny, random: answers/s"), each with the value of every repetition. `targets` decide whether the campaign passed,
    unless the run is too small for that: then `too_small` names the option that made it so."""

    summary: str = ""
    question: str = ""
    targets: list[Target] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)
    raw: list[dict[str, Any]] = field(default_factory=list)
    too_small: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether every target was measured and met; None for a run that is too small to tell."""
        return None if self.too_small else all(target.met for target in self.targets)
