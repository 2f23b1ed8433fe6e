"""Does every request get a response, for any number of requests, any rate and any route?

Each combination of a number of requests, the time between two of them and a route is one cell, as in the study
of connection pools. Each request begins at its scheduled time over a new connection, whatever the outcome of
earlier ones. The cells run one after the other.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdb_rest.management.quantities import Number
from loadtests import metrics, schedule
from loadtests.campaigns import tag_options
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.recording import outcome
from loadtests.recording.reading import Recording
from loadtests.reporting import plots
from loadtests.reporting.figures import percentile
from loadtests.reporting.findings import Findings, Run
from loadtests.reporting.result import Plot, Table, Target
from loadtests.schedule import Wave

TITLE = "Hammer"
COUNTS, QUICK_COUNTS = (100, 200, 500), (10, 20, 50)
OFFSETS_MS = (50, 100, 200, 1000, 2000)
# The hot path; the request of a job before it; a request of an expert around an insert.
ROUTES = ("lookup", "globalTags", "gtPayloadLists")
# Names of routes in the service's metrics, where they differ.
SERVED = {"lookup": "payloadiovs"}
SCALE, QUICK_SCALE = 0.1, 0.02
LEAST_SUCCESS = 99.0
# The columns of the study; its 500 is 5xx here. The rest is wrong answers, other 4xx, and requests that were not sent.
SHOWN = (outcome.OK, outcome.NO_RESPONSE, outcome.NOT_FOUND, outcome.SERVER_ERROR, outcome.OVERLOADED)
COLUMNS = ("requests", "success %", "no response %", "404 %", "5xx %", "504 %", "other %", "p50 ms", "p99 ms")


@dataclass(frozen=True)
class Cell:
    """A cell of the matrix; `offset_ms` is the time between two requests in the study, before scaling."""

    route: str
    count: int
    offset_ms: int

    @property
    def name(self) -> str:
        """The name of the cell's requests in the recording."""
        return f"{self.route}: {self.count} × {self.offset_ms} ms"


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of the requests of some cells: counts by outcome, and times in milliseconds.

    `planned` includes requests that are not in the recording.
    """

    planned: int
    counts: dict[str, int]
    times: Sequence[float]

    @classmethod
    def of(cls, requests: Recording, cells: Iterable[Cell]) -> "Outcomes":
        """Select the requests of the cells from all requests."""
        chosen = list(cells)
        there = [requests.where(requests.names == cell.name) for cell in chosen]
        outcomes = [one for part in there for one in part.outcomes.tolist()]
        times = [time for part in there for time in part.milliseconds.tolist()]
        counts = {name: outcomes.count(name) for name in outcome.OUTCOMES}
        return cls(sum(cell.count for cell in chosen), counts, times)

    def share(self, name: str) -> float:
        """The share of an outcome among the planned requests, in percent."""
        return 100 * self.counts[name] / self.planned

    def row(self) -> tuple:
        """The cells of a table row, in the order of `COLUMNS`."""
        shares = [self.share(name) for name in SHOWN]
        shares.append(100 * (self.planned - sum(self.counts[name] for name in SHOWN)) / self.planned)
        return (self.planned, *(f"{share:.2f}" for share in shares), self.time_of(50), self.time_of(99))

    def time_of(self, share: float) -> float | None:
        """A percentile of the times in milliseconds; None without requests."""
        return percentile(self.times, share) if self.times else None


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the rate and the tag."""
    add = parser.add_argument
    described = (
        f"of the offsets in the study; 1 takes more than two hours (default: {SCALE}, with --quick: {QUICK_SCALE})"
    )
    add("--scale", action=Number, above=0, metavar="FACTOR", help=f"factor {described}")
    add("--scenario", default="moderate", help="scenario in the tag; none: other data (default: moderate)")
    tag_options.add_content(parser)


def run(stage: Stage) -> Findings:
    """Run all cells in one run of locust."""
    scale = float(stage.options.get("scale") or (QUICK_SCALE if stage.quick else SCALE))
    counts = QUICK_COUNTS if stage.quick else COUNTS
    cells = [Cell(route, count, offset) for route in ROUTES for count in counts for offset in OFFSETS_MS]
    waves = [Wave(cell.name, cell.route, cell.count, cell.offset_ms / 1000 * scale) for cell in cells]
    file = stage.output / "schedule.json"
    schedule.write(file, waves)
    scenario = stage.options.get("scenario", "moderate")
    options = {"schedule": file, "scenario": scenario, **tag_options.content(stage.options)}
    with stage.serving(scenarios=(scenario,)):
        minutes = sum(wave.count * wave.offset for wave in waves) / 60
        stage.say(f"{len(cells)} cells will take {minutes:.1f} minutes")
        run = stage.load("all cells", Load.scheduled(waves, options))
    return _findings(run, cells, scale)


def _findings(run: Run, cells: list[Cell], scale: float) -> Findings:
    requests = run.recording.requests
    each = {cell: Outcomes.of(requests, [cell]) for cell in cells}
    total = Outcomes.of(requests, cells)
    worst = min(cells, key=lambda cell: each[cell].share(outcome.OK))
    lost, least = total.share(outcome.NO_RESPONSE), each[worst].share(outcome.OK)
    tables = [_table("All requests", "", {"all cells": cells}, requests)]
    for title, what, key in (
        ("By offset", "offset", lambda cell: f"{cell.offset_ms} ms"),
        ("By number of requests", "requests of a cell", lambda cell: str(cell.count)),
        ("By route", "route", lambda cell: cell.route),
    ):
        groups = {name: [cell for cell in cells if key(cell) == name] for name in map(key, cells)}
        tables.append(_table(title, what, groups, requests))
    tables += [_progress(run, cells), _table("Each cell", "cell", {cell.name: [cell] for cell in cells}, requests)]
    return Findings(
        summary=f"{total.share(outcome.OK):.2f} % of {total.planned:,} requests got the correct response and {lost:.2f} % none; "
        f"the worst of {len(cells)} cells has {least:.2f} % success",
        targets=[
            Target("no response, all cells", lost, 0, at_most=True, unit="%"),
            Target("success in the worst cell", least, LEAST_SUCCESS, at_most=False, unit="%", note=worst.name),
        ],
        tables=tables,
        plots=[_plot(each)],
        runs=[run],
        notes=[_note(scale)],
        figures=_figures(cells, requests),
        raw=[
            {"route": cell.route, "count": cell.count, "offset_ms": cell.offset_ms} | each[cell].counts
            for cell in cells
        ],
    )


def _table(title: str, what: str, groups: dict[str, list[Cell]], requests: Recording) -> Table:
    return Table(
        title, (what, *COLUMNS), [(name, *Outcomes.of(requests, cells).row()) for name, cells in groups.items()]
    )


def _progress(run: Run, cells: list[Cell]) -> Table:
    """How far requests got: to the view, to the query and back.

    Without /metrics only the number of sent requests is known.
    """
    rows, known = [], bool(run.counters)
    for route in ROUTES:
        sent = int(sum((run.recording.requests.names == cell.name).sum() for cell in cells if cell.route == route))
        name_in_metrics = SERVED.get(route, route)
        reached = sum(
            value
            for name, value in run.counters.items()
            if name.startswith("cdb_requests_total{") and f"/{name_in_metrics}" in name
        )
        queries = [metrics.total(run.counters, f"cdb_lookups_{how}_total") for how in ("started", "finished")]
        query = map(round, queries) if known and route == "lookup" else (None, None)
        rows.append((route, sent, round(reached) if known else None, *query))
    columns = ("route", "sent", "reached the view", "query started", "query finished")
    return Table(
        "On the way (the last three as /metrics counts; what nginx answers from its cache reaches no view)",
        columns,
        rows,
    )


def _plot(each: dict[Cell, Outcomes]) -> Plot:
    series = {
        f"{route}, {count} requests": [
            (cell.offset_ms, outcomes.time_of(99))
            for cell, outcomes in each.items()
            if (cell.route, cell.count) == (route, count) and outcomes.times
        ]
        for route, count in dict.fromkeys((cell.route, cell.count) for cell in each)
    }
    return plots.lines(
        "99th percentile of each cell", {name: points for name, points in series.items() if points},
        x="offset of the study, ms", y="ms", log_x=True, log_y=True,
    )  # fmt: skip


def _figures(cells: list[Cell], requests: Recording) -> dict[str, list[float]]:
    found = {"success: %": [Outcomes.of(requests, cells).share(outcome.OK)]}
    for route in ROUTES:
        times = Outcomes.of(requests, [cell for cell in cells if cell.route == route]).times
        found |= {f"{route}: p{share} ms": [percentile(times, share)] for share in (50, 99) if times}
    return found


def _note(scale: float) -> str:
    shown = " / ".join(f"{offset * scale:g}" for offset in OFFSETS_MS)
    return (
        f"Offsets are named as in the study, {' / '.join(map(str, OFFSETS_MS))} ms. With the scale {scale:g} they are "
        f"{shown} ms here, which is {1 / scale:g} times the study's rate. Times count from when a request was due."
    )
