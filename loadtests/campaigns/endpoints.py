"""Which lookup strategy is the fastest under the same load?

The campaign compares the normal route with those of all strategies, which exist with CDB_STRATEGIES. The database time is
what the service reports in Server-Timing for sequential lookups of one client.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.campaigns import options
from loadtests.campaigns.closed import REPETITIONS, load_of_lookups
from loadtests.campaigns.stage import Stage
from loadtests.campaigns.sweep import Point, Sweep
from loadtests.client import Client, lookups
from loadtests.reporting import plots
from loadtests.reporting.figures import curves, grouped, number, percentile
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings, Plot, Table
from loadtests.service import manage

OWN_ROUTE = "payloadiovs"
# For eight concurrent lookups by the slowest strategy, each of which takes several seconds alone.
PATIENCE_SECONDS = 120
# The sequential lookups of a point, whose database time is measured: their number, and the seconds for them.
CALLS, QUICK_CALLS, CALLS_SECONDS = 100, 10, 1.0
TIMES = {"route": "route", "scenario": "scenario", "moments": "moments", "calls": "calls", "rows": "rows"}
TIMES |= {f"p{share}": f"p{share} ms" for share in (50, 95, 99)}


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the tag and the strategies."""
    options.add_scenario(parser, "heavy-usage", "moderate")
    text = "strategies to compare with the normal route (default: all)"
    parser.add_argument("--strategies", nargs="+", default=[], metavar="NAME", help=text)


def run(stage: Stage) -> Findings:
    """Compare the strategies at random moments."""
    repetitions = 1 if stage.quick else REPETITIONS
    return compare(
        stage, [stage.options.scenario], ["random"], stage.options.strategies, seconds=8, repetitions=repetitions
    )


def routes(client: Client) -> list[str]:
    """The names of the normal route and of the routes of all strategies."""
    listed = client.call("GET", "payloadiovs_strategies/").json
    return [OWN_ROUTE, *(f"payloadiovs_{entry['name']}" for entry in listed)]


def compare(
    stage: Stage,
    scenarios: Sequence[str],
    patterns: Sequence[str],
    strategies: Sequence[str] = (),
    *,
    clients: int = 8,
    seconds: float,
    repetitions: int,
) -> Findings:
    """The findings for all routes, or those of some strategies, in these scenarios and patterns, of which one is random."""
    with stage.serving(scenarios=tuple(scenarios), command="run"):
        names = [OWN_ROUTE, *(f"payloadiovs_{name}" for name in strategies)] if strategies else routes(stage.client())
    points = []
    for route, scenario, pattern in product(names, scenarios, patterns):
        more = {"route": f"{route}/", "pattern": pattern, "patience": PATIENCE_SECONDS}
        load = load_of_lookups(stage, scenario, clients, seconds, **more)
        points.append(Point((route, scenario, pattern), load, scenario, pattern, f"{route}/"))
    sweep = Sweep(("route", "scenario", "moments"), "{0}" if len(points) == len(names) else "{0}, {1}, {2}")
    try:
        if not stage.host:
            manage(stage.settings, "strategy_indexes", "create")
        with stage.serving(scenarios=tuple(scenarios), command="run"):
            times = list(database_times(stage, points))
        sweep.measure(stage, points, repetitions, command="run")
    finally:
        if not stage.host:
            manage(stage.settings, "strategy_indexes", "drop")
    largest, series = scenarios[-1], {route: (route, scenarios[-1], "random") for route in names}
    rates = {route: sweep.median("rate", *point) for route, point in series.items()}
    slowest = min(rates, key=rates.__getitem__)
    return sweep.findings(
        f"{largest} at random moments: {number(rates[OWN_ROUTE])} lookups per second by {OWN_ROUTE}, "
        f"{number(rates[slowest])} by {slowest}",
        [sweep.table_of(f"Lookups, {clients} threads"), Table.of("Database time of sequential lookups", times, TIMES)],
        _plots(sweep, times, largest, series),
        notes("endpoints", seconds=seconds),
        figures=("rate", "p50", "p99"),
        # Random data have no row that is valid at the first moment.
        empty=[point.parts for point in points if point.pattern == "first"],
    )


def database_times(stage: Stage, points: Sequence[Point]) -> Iterator[dict[str, Any]]:
    """Send sequential lookups at each point: their number, their rows, and percentiles of their database time."""
    for point in points:
        stage.say(f"database time of {', '.join(point.parts)}")
        calls = QUICK_CALLS if stage.quick else CALLS
        with stage.client() as client:
            found = lookups(client, point.tag, point.pattern, calls=calls, seconds=CALLS_SECONDS, route=point.route)
        row = dict(zip(("route", "scenario", "moments"), point.parts, strict=True))
        row |= {"iovs": SCENARIOS[point.tag].iovs, "calls": len(found), "rows": max(one.rows for one in found)}
        # A proxy of a deployment may remove the header.
        known = [one.database for one in found if "server-timing" in one.headers]
        yield row | {f"p{share}": percentile(known, share) if known else None for share in (50, 95, 99)}


def _plots(sweep: Sweep, times: list[dict[str, Any]], largest: str, series: dict[str, tuple]) -> Iterator[Plot]:
    """Frequency and response times in the largest tag, and database times, all at random moments."""
    yield plots.bars(
        f"{largest}: frequency",
        {route: sweep.spread("rate", *point) for route, point in series.items()},
        x="lookups/s",
        log_x=True,
    )
    shown = {
        route: tuple(sweep.median(share, *point) for share in ("p50", "p95", "p99")) for route, point in series.items()
    }
    yield plots.percentiles(f"{largest}: response time", shown, x="ms")
    chosen = [row for row in times if row["moments"] == "random" and row["p50"] is not None]
    by_size = curves(chosen, "route", "iovs", "p50")
    if by_size and min(map(len, by_size.values())) > 1:
        title = "Median database time by the size of the tag"
        yield plots.lines(title, by_size, x="IOVs in the tag", y="ms", log_x=True, log_y=True)
    for scenario, rows in grouped(chosen, "scenario").items():
        shown = {row["route"]: (row["p50"], row["p95"], row["p99"]) for row in rows}
        yield plots.percentiles(f"{scenario}: database time", shown, x="ms")
