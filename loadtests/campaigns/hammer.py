"""Does every request get a response, for any number of requests, any rate and any route?

Each combination of a number of requests, the time between two of them and a route is one cell, as in the study
of connection pools. Each request begins at its scheduled time over a new connection, whatever the outcome of
earlier ones. The cells run one after the other.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from cdb_rest.management.quantities import Number
from loadtests import metrics, schedule
from loadtests.campaigns import options
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.recording import outcome
from loadtests.recording.reading import Recording
from loadtests.reporting import plots, summaries
from loadtests.reporting.figures import curves
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings, Plot, Run, Table, Target
from loadtests.schedule import Wave

COUNTS, QUICK_COUNTS = (100, 200, 500), (10, 20, 50)
OFFSETS_MS = (50, 100, 200, 1000, 2000)
# The hot path; the request of a job before it; a request of an expert around an insert.
ROUTES = ("lookup", "globalTags", "gtPayloadLists")
# Names of routes in the service's metrics, where they differ.
SERVED = {"lookup": "payloadiovs"}
SCALE, QUICK_SCALE = 0.1, 0.02
LEAST_SUCCESS = 99.0
# The columns of the study; its 500 is 5xx here. The rest is wrong responses, other 4xx, and requests that were not sent.
SHARES = {outcome.OK: "success %", outcome.NO_RESPONSE: "no response %", outcome.NOT_FOUND: "404 %"}
SHARES |= {outcome.SERVER_ERROR: "5xx %", outcome.OVERLOADED: "504 %"}
COLUMNS = {"requests": "requests", **SHARES, "other": "other %", "p50_ms": "p50 ms", "p99_ms": "p99 ms"}


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


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the rate and the tag."""
    text = "factor of the offsets in the study; 1 takes more than two hours"
    options.add(parser, "--scale", text, SCALE, QUICK_SCALE, action=Number, above=0, metavar="FACTOR")
    options.add(parser, "--scenario", "scenario in the tag; none: other data", "moderate")
    options.add_content(parser)


def run(stage: Stage) -> Findings:
    """Run all cells in one run of locust."""
    scale, scenario = stage.options.scale, stage.options.scenario
    counts = QUICK_COUNTS if stage.quick else COUNTS
    cells = [Cell(route, count, offset) for route in ROUTES for count in counts for offset in OFFSETS_MS]
    waves = [Wave(cell.name, cell.route, cell.count, cell.offset_ms / 1000 * scale) for cell in cells]
    file = stage.output / "schedule.json"
    schedule.write(file, waves)
    settings = {"schedule": file, "scenario": scenario, **options.content(stage.options)}
    with stage.serving(scenarios=(scenario,)):
        minutes = sum(wave.count * wave.offset for wave in waves) / 60
        stage.say(f"{len(cells)} cells will take {minutes:.1f} minutes")
        run = stage.load("all cells", Load.scheduled(waves, settings))
    return _findings(run, cells, scale)


def outcomes_of(requests: Recording, cells: Sequence[Cell]) -> dict[str, Any]:
    """The outcomes of the requests of some cells: shares of all planned ones in percent, and percentiles of their times.

    Planned requests that are not in the recording count as `other`.
    """
    chosen = requests.where(numpy.isin(requests.names, [cell.name for cell in cells]))
    planned = sum(cell.count for cell in cells)
    shares = {name: 100 * int((chosen.outcomes == name).sum()) / planned for name in SHARES}
    return {
        "requests": planned,
        **shares,
        "other": 100 - sum(shares.values()),
        **summaries.percentiles_of(chosen.milliseconds),
    }


def _table(title: str, what: str, groups: Mapping[str, Sequence[Cell]], requests: Recording) -> Table:
    rows = [{"name": name, **outcomes_of(requests, cells)} for name, cells in groups.items()]
    for row in rows:
        row |= {name: f"{abs(row[name]):.2f}" for name in (*SHARES, "other")}
    return Table.of(title, rows, {"name": what, **COLUMNS})


def _findings(run: Run, cells: list[Cell], scale: float) -> Findings:
    requests = run.recording.requests
    total = outcomes_of(requests, cells)
    each = [{"cell": cell, **outcomes_of(requests, [cell])} for cell in cells]
    worst = min(each, key=lambda row: row[outcome.OK])
    scaled = [f"{offset * scale:g}" for offset in OFFSETS_MS]
    return Findings(
        summary=f"{total[outcome.OK]:.2f} % of {total['requests']:,} requests got the correct response and "
        f"{total[outcome.NO_RESPONSE]:.2f} % none; the worst of {len(cells)} cells has {worst[outcome.OK]:.2f} % success",
        targets=[
            Target("no response, all cells", total[outcome.NO_RESPONSE], 0, at_most=True, unit="%"),
            Target(
                "success in the worst cell", worst[outcome.OK], LEAST_SUCCESS, False, unit="%", note=worst["cell"].name
            ),
        ],
        tables=[
            _table("All requests", "", {"all cells": cells}, requests),
            _table("By offset", "offset", _grouped(cells, "{0.offset_ms} ms"), requests),
            _table("By number of requests", "requests of a cell", _grouped(cells, "{0.count}"), requests),
            _table("By route", "route", _grouped(cells, "{0.route}"), requests),
            _progress(run, cells),
            _table("Each cell", "cell", _grouped(cells, "{0.name}"), requests),
        ],
        plots=[_plot(each)],
        runs=[run],
        notes=notes("hammer", offsets=OFFSETS_MS, scale=f"{scale:g}", scaled=scaled, factor=f"{1 / scale:g}"),
        figures={"success: %": [total[outcome.OK]]} | _figures(requests, cells),
        raw=[vars(cell) | requests.where(requests.names == cell.name).counts for cell in cells],
    )


def _grouped(cells: Sequence[Cell], form: str) -> dict[str, list[Cell]]:
    """The cells by a text that is formatted from them."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(form.format(cell), []).append(cell)
    return groups


def _figures(requests: Recording, cells: list[Cell]) -> dict[str, list[float]]:
    figures = {}
    for route, of_route in _grouped(cells, "{0.route}").items():
        found = outcomes_of(requests, of_route)
        figures |= {f"{route}: p{share} ms": [found[f"p{share}_ms"]] for share in (50, 99) if found["p50_ms"]}
    return figures


def _plot(each: list[dict[str, Any]]) -> Plot:
    rows = [
        {"series": f"{row['cell'].route}, {row['cell'].count} requests", "offset": row["cell"].offset_ms, **row}
        for row in each
    ]
    series = curves(rows, "series", "offset", "p99_ms")
    axes = {"x": "offset of the study, ms", "y": "ms", "log_x": True, "log_y": True}
    return plots.lines("99th percentile of each cell", series, **axes)


def _progress(run: Run, cells: list[Cell]) -> Table:
    """How far requests got: to the view, to the query and back.

    Without /metrics only the number of sent requests is known.
    """
    rows, names = [], run.recording.requests.names
    for route in ROUTES:
        sent = int(numpy.isin(names, [cell.name for cell in cells if cell.route == route]).sum())
        counts: list[int | None] = [None, None, None]
        if run.counters:
            counts[0] = round(metrics.total(run.counters, "cdb_requests_total", of=f"/{SERVED.get(route, route)}"))
        if run.counters and route == "lookup":
            counts[1:] = (
                round(metrics.total(run.counters, f"cdb_lookups_{how}_total")) for how in ("started", "finished")
            )
        rows.append((route, sent, *counts))
    columns = ("route", "sent", "reached the view", "query started", "query finished")
    title = "On the way (the last three as /metrics counts; responses from nginx's cache reach no view)"
    return Table(title, columns, rows)
