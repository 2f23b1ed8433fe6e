"""Sweeps: measurements at several points, such as lookups in closed loops, in turns and with the spread of figures."""

import itertools
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.client import Client, lookup_path
from loadtests.content.moments import drawing
from loadtests.content.starts import Starts
from loadtests.content.tags import scenario_of
from loadtests.harness import in_turns
from loadtests.reporting import plots, summaries
from loadtests.reporting.figures import Spread
from loadtests.reporting.result import Findings, Plot, Run, Table, Target, all_correct

WARM_UP_SECONDS, QUICK_WARM_UP_SECONDS, WARM_UP_THREADS = 1.0, 0.2, 16
WARM_UP_TIMEOUT_SECONDS = 120
# The columns of tables, by the names of `figures_of`.
COLUMNS = {"count": "lookups", "rate": "lookups/s", "peak": "busiest second", "p50": "p50 ms", "p95": "p95 ms"}
COLUMNS |= {"p99": "p99 ms", "rows": "rows per response", "failed": "failed requests", "cores": "generator, cores"}
# The values of repetitions are added; those of other columns are shown with their spread.
COUNTS = ("count", "failed")

Figures = Mapping[str, float | None]


@dataclass(frozen=True)
class Point:
    """A point of a sweep: the numbers or names that identify it, and its load.

    `workers` is the number of processes of granian (None: the usual one). The report has a section about the first run at a
    `detailed` point.
    """

    parts: tuple
    load: Load
    workers: int | None = None
    detailed: bool = False


@dataclass
class Sweep:
    """The figures of all repetitions of a measurement, and its runs, by the parts of its points.

    The parts of a point are the numbers or names that identify it. `columns` are their columns in tables and CSV files,
    `label` is a format of them.
    """

    columns: tuple[str, ...]
    label: str = "{}"
    measured: dict[tuple, list[Figures]] = field(default_factory=dict, init=False)
    runs: list[Run] = field(default_factory=list, init=False)

    def measure(self, stage: Stage, points: Sequence[Point], repetitions: int, command: str = "serve") -> None:
        """Measure all points in turns of alternating order, each after a second of other lookups.

        `command` is that of manage.py. Points in sequence that have the same number of workers share a service.
        """
        tags = tuple(dict.fromkeys(point.load.options["global-tag"] for point in points))
        turns = in_turns(points, repetitions)
        for workers, group in itertools.groupby(turns, key=lambda turn: turn[1].workers):
            with stage.serving(scenarios=tags, command=command, workers=workers):
                for turn, point in group:
                    warm_up(stage, point.load)
                    label, detailed = f"{self.label.format(*point.parts)}, {turn}", point.detailed and turn == 1
                    run = stage.load(label, point.load, detailed=detailed)
                    self.add(point.parts, run, figures_of(run))

    def add(self, parts: tuple, run: Run, figures: Figures) -> None:
        """Add a repetition of a point."""
        self.runs.append(run)
        self.measured.setdefault(parts, []).append(figures)

    def values(self, name: str, *parts: Any) -> list[float]:
        """The values of a figure in all repetitions of a point that have it."""
        return [value for one in self.measured[parts] if (value := one.get(name)) is not None]

    def median(self, name: str, *parts: Any) -> float | None:
        """The median of a figure at a point; None without values."""
        values = self.values(name, *parts)
        return statistics.median(values) if values else None

    def spreads(self, name: str) -> dict[str, Spread]:
        """The spread of a figure at all points, by their labels. Raises `ValueError` if a point has no values."""
        return {self.label.format(*parts): Spread.of(self.values(name, *parts)) for parts in self.measured}

    def table(self, title: str, headings: Mapping[str, str] = COLUMNS, **more: Callable[..., Any]) -> Table:
        """A table with a row for each point, and the spread of each figure, or its sum for those in `COUNTS`.

        `headings` are by the name of the figure. `more` are further columns before the figures, with functions of the parts.
        """

        def shown(name: str, values: Sequence[float]) -> int | str | None:
            return int(sum(values)) if name in COUNTS else str(Spread.of(values)) if values else None

        rows = [
            (
                *parts,
                *(cell(*parts) for cell in more.values()),
                *(shown(name, self.values(name, *parts)) for name in headings),
            )
            for parts in self.measured
        ]
        columns = (*self.columns, *more, *headings.values())
        return Table(f"{title}: median (minimum–maximum) of repetitions", columns, rows)

    def figures(self, headings: Mapping[str, str]) -> dict[str, list[float]]:
        """The values of some figures for `compare`, by the labels of points and the headings; those without are omitted."""
        return {
            f"{self.label.format(*parts)}: {heading}": values
            for parts in self.measured
            for name, heading in headings.items()
            if (values := self.values(name, *parts))
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row for each repetition, for the CSV file."""
        return [
            dict(zip(self.columns, parts, strict=True)) | {"repetition": number} | one
            for parts, repetitions in self.measured.items()
            for number, one in enumerate(repetitions, 1)
        ]

    def scaling(
        self, title: str, *names: str, place: Callable[..., tuple[str, float]] | None = None, **axes: Any
    ) -> Plot:
        """Lines of figures with their spread; `place` gives the line and the x of a point's parts.

        By default, points are (line, x), or (x,) with a line for each figure. `axes` are those of `plots.scaling`.
        """
        series: dict[str, list[tuple[float, list[float]]]] = {}
        for parts, name in itertools.product(self.measured, names):
            default = f"{self.columns[0]}: {parts[0]}" if len(parts) > 1 else COLUMNS.get(name, name)
            line, x = place(*parts) if place else (default, parts[-1])
            if values := self.values(name, *parts):
                series.setdefault(line, []).append((x, values))
        return plots.scaling(title, series, **({"x": self.columns[-1]} | axes))

    def findings(
        self,
        summary: str,
        table: Table,
        plots: Sequence[Plot],
        notes: Sequence[str],
        *,
        figures: Sequence[str],
        empty: Sequence[tuple] = (),
    ) -> Findings:
        """The findings of the campaign.

        `figures` are those that `compare` compares. Lookups must return rows except at the points `empty`.
        """
        targets, full = [all_correct(self.runs)], [point for point in self.measured if point not in empty]
        if full:
            fewest = min(min(self.values("rows", *point)) for point in full)
            targets.append(Target("fewest rows per response, where rows are expected", fewest, 1, at_most=False))
        return Findings(
            summary=summary,
            targets=targets,
            tables=[table],
            plots=list(plots),
            runs=self.runs,
            notes=list(notes),
            figures=self.figures({name: COLUMNS[name] for name in figures}),
            raw=self.rows(),
        )


def figures_of(run: Run) -> dict[str, float | None]:
    """The figures of the lookups of a run; 0 if there is no correct response.

    `rate` is the number of correct responses per second, from the start of the first request to the end of the
    last one. `peak` is the number of all lookups in the busiest second, None for runs of two seconds or less.
    `p50`, `p95` and `p99` are in milliseconds. `rows` is the mean over correct responses. `failed` counts
    failed requests of all names. `cores` is the maximum of the generator's CPU, None for runs of less than a
    second.
    """
    requests = run.recording.requests
    of = summaries.summary_of(requests.where(requests.names == "lookup"))
    peak = float(of["peak_rate"]) if of["seconds"] > 2 else None
    found = {"count": of["requests"], "rate": of["ok_rate"] or 0.0, "peak": peak}
    found |= {name: of[f"{name}_ms"] or 0.0 for name in ("p50", "p95", "p99")}
    found |= {"rows": of["rows_per_response"] or 0.0, "failed": requests.failures}
    return found | {"cores": max((sample.cpu for sample in run.recording.samples), default=None)}


def warm_up(stage: Stage, load: Load) -> None:
    """Send uncounted lookups for a second, so that threads have connections and plans, and data are in memory.

    The expected rows are generated first, if they do not exist, because users cannot begin without them. Raises
    `ServiceError` if a lookup fails.
    """
    tag, pattern = load.options["global-tag"], load.options.get("pattern", "random")
    Starts(scenario_of(tag), "random", seed=1)
    end = time.monotonic() + stage.size(WARM_UP_SECONDS, QUICK_WARM_UP_SECONDS)
    route = load.options.get("route", "payloadiovs/")

    def send(number: int) -> None:
        draw = drawing(pattern, source=random.Random(1000 + number))
        client = Client(stage.url, timeout=WARM_UP_TIMEOUT_SECONDS)
        while True:
            client.call("GET", lookup_path(tag, draw(), route))
            if time.monotonic() > end:
                break

    with ThreadPoolExecutor(WARM_UP_THREADS) as pool:
        list(pool.map(send, range(WARM_UP_THREADS)))
