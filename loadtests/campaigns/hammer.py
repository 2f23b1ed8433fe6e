"""Does every request get a response, for any number of requests, any rate and any route?

Each combination of a number of requests, the time between two of them and a route is one cell, as in the study
of connection pools. Each request begins at its scheduled time over a new connection, whatever the outcome of
earlier ones. The cells run one after the other.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy

from cdb_rest.management.quantities import Number
from loadtests import metrics
from loadtests.campaigns import options
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.recording import outcome
from loadtests.recording.reading import Recording
from loadtests.reporting import plots, summaries
from loadtests.reporting.figures import curves
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings, Run, Table, Target
from loadtests.schedule import Wave, waves

COUNTS, QUICK_COUNTS = (100, 200, 500), (10, 20, 50)
OFFSETS_MS = (50, 100, 200, 1000, 2000)
# The hot path; the request of a job before it; a request of an expert around an insert.
ROUTES = ("lookup", "globalTags", "gtPayloadLists")
SCALE, QUICK_SCALE = 0.1, 0.02
LEAST_SUCCESS = 99.0
# The columns of the study; its 500 is 5xx here. The rest is wrong responses, other 4xx, and requests that were not sent.
SHARES = {outcome.OK: "success %", outcome.NO_RESPONSE: "no response %", outcome.NOT_FOUND: "404 %"}
SHARES |= {outcome.SERVER_ERROR: "5xx %", outcome.OVERLOADED: "504 %"}
COLUMNS = {"requests": "requests", **SHARES, "other": "other %", "p50_ms": "p50 ms", "p99_ms": "p99 ms"}


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the rate and the tag."""
    text = "factor of the offsets in the study; 1 takes more than two hours"
    options.add(parser, "--scale", text, SCALE, QUICK_SCALE, action=Number, above=0, metavar="FACTOR")
    options.add(parser, "--scenario", "scenario in the tag; none: other data", "moderate")
    options.add_content(parser)


def run(stage: Stage) -> Findings:
    """Run all cells in one run of locust."""
    scale, scenario = stage.options.scale, stage.options.scenario
    values = {"routes": ROUTES, "counts": stage.size(COUNTS, QUICK_COUNTS), "offsets": OFFSETS_MS}
    matrix = {name: ",".join(map(str, found)) for name, found in values.items()}
    cells = waves(**matrix)
    # Without a number of jobs, locust would not end by itself.
    settings = {"start-jobs": "at a constant rate", "jobs-per-user": sum(cell.count for cell in cells)}
    settings |= {"scenario": scenario, **options.content(stage.options), **matrix, "offset-scale": scale}
    with stage.serving(scenarios=(scenario,)):
        minutes = sum(cell.count * cell.offset_ms for cell in cells) * scale / 60_000
        stage.say(f"{len(cells)} cells will take {minutes:.1f} minutes")
        run = stage.load("all cells", Load({"Scheduled": 1}, 1, options=settings))
    return _findings(run, cells, scale)


def outcomes_of(requests: Recording, cells: Sequence[Wave]) -> dict[str, Any]:
    """The outcomes of the requests of some cells: shares of all planned ones in percent, and percentiles of their times.

    Planned requests that are not in the recording count as `other`.
    """
    chosen = requests.where(numpy.isin(requests.names, [cell.name for cell in cells]))
    planned, counts = sum(cell.count for cell in cells), chosen.counts
    shares = {name: 100 * counts[name] / planned for name in SHARES}
    times = summaries.percentiles_of(chosen.milliseconds)
    return {"requests": planned, **shares, "other": 100 - sum(shares.values()), **times}


def _findings(run: Run, cells: list[Wave], scale: float) -> Findings:
    requests = run.recording.requests

    def rows_by(form: str) -> list[dict[str, Any]]:
        """The outcomes of groups of cells by a text that is formatted from the cells."""
        groups: dict[str, list[Wave]] = {}
        for cell in cells:
            groups.setdefault(form.format(cell), []).append(cell)
        return [{"name": name, **outcomes_of(requests, group)} for name, group in groups.items()]

    [total], routes, each = rows_by("all cells"), rows_by("{0.route}"), rows_by("{0.name}")
    worst = min(each, key=lambda row: row[outcome.OK])
    raw = [cell._asdict() | requests.where(requests.names == cell.name).counts for cell in cells]
    slowest = [
        {"series": f"{cell.route}, {cell.count} requests", "offset": cell.offset_ms, **row}
        for cell, row in zip(cells, each, strict=True)
    ]
    axes = {"x": "offset of the study, ms", "y": "ms", "log_x": True, "log_y": True}
    return Findings(
        summary=f"{total[outcome.OK]:.2f} % of {total['requests']:,} requests got the correct response and "
        f"{total[outcome.NO_RESPONSE]:.2f} % none; the worst of {len(cells)} cells has {worst[outcome.OK]:.2f} % success",
        targets=[
            Target("no response, all cells", total[outcome.NO_RESPONSE], 0, at_most=True, unit="%"),
            Target("success in the worst cell", worst[outcome.OK], LEAST_SUCCESS, False, unit="%", note=worst["name"]),
        ],
        tables=[
            _table("All requests", "", [total]),
            _table("By offset", "offset", rows_by("{0.offset_ms} ms")),
            _table("By number of requests", "requests of a cell", rows_by("{0.count}")),
            _table("By route", "route", routes),
            _progress(run),
            _table("Each cell", "cell", each),
        ],
        plots=[plots.lines("99th percentile of each cell", curves(slowest, "series", "offset", "p99_ms"), **axes)],
        runs=[run],
        notes=notes(
            "hammer",
            offsets=OFFSETS_MS,
            scale=f"{scale:g}",
            scaled=[f"{offset * scale:g}" for offset in OFFSETS_MS],
            factor=f"{1 / scale:g}",
        ),
        figures={"success: %": [total[outcome.OK]]}
        | {
            f"{row['name']}: {name[:3]} ms": [row[name]] for row in routes for name in ("p50_ms", "p99_ms") if row[name]
        },
        raw=raw,
    )


def _table(title: str, what: str, rows: list[dict[str, Any]]) -> Table:
    """A table whose shares are not rounded by the report, so that 99.96 % is not 100 %."""
    shown = [row | {name: f"{abs(row[name]):.2f}" for name in (*SHARES, "other")} for row in rows]
    return Table.of(title, shown, {"name": what, **COLUMNS})


def _progress(run: Run) -> Table:
    """How far the lookups got: to the view, to the query and back; unknown without /metrics, except for sent ones."""
    sent = sum(name.startswith("lookup: ") for name in run.recording.requests.names.tolist())
    counts = [metrics.total(run.counters, f"cdb_lookups_{step}_total") for step in ("received", "started", "finished")]
    row = (sent, *(round(count) if run.counters else None for count in counts))
    columns = ("sent", "reached the view", "query started", "query finished")
    return Table("Lookups on the way (by /metrics; responses from nginx's cache reach no view)", columns, [row])
