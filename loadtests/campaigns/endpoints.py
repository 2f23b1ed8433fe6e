"""Which way to answer a lookup is the fastest under the same load?

The service's own route beside those of all strategies, which are there with CDB_STRATEGIES.
"""

import argparse

from loadtests.campaigns.api import send
from loadtests.campaigns.lookups import COLUMNS, Repeated, add_scenario, in_turns, lookups_alone, warm_up
from loadtests.campaigns.stage import Stage
from loadtests.reporting import plots
from loadtests.reporting.figures import Spread, number
from loadtests.reporting.findings import Findings
from loadtests.reporting.result import Table
from loadtests.service import manage

TITLE = "Strategies"
SCENARIO, QUICK_SCENARIO = "heavy-usage", "moderate"
THREADS, SECONDS, REPETITIONS = 8, 8, 2
OWN = "payloadiovs"
# Eight at once of the slowest, each of which takes several seconds alone.
PATIENCE_SECONDS = 120


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Which tag, and which strategies."""
    add_scenario(parser, SCENARIO)
    parser.add_argument("--strategies", nargs="+", metavar="NAME", help="beside the service's own route (all)")


def run(stage: Stage) -> Findings:
    """Every strategy, bounded by time."""
    scenario = stage.options.get("scenario", QUICK_SCENARIO if stage.quick else SCENARIO)
    repeated = Repeated()
    with stage.serving(scenarios=(scenario,), command="run"):
        own_indexes = not stage.host
        if own_indexes:
            manage(stage.settings, "strategy_indexes", "create")
        try:
            for turn, name in in_turns([OWN, *_strategies(stage)], 1 if stage.quick else REPETITIONS):
                warm_up(stage, scenario, "random", route=f"{name}/")
                load = lookups_alone(stage, scenario, THREADS, SECONDS, route=f"{name}/", patience=PATIENCE_SECONDS)
                repeated.add(name, stage.load(f"{name}, {turn}", load, detailed=False))
        finally:
            if own_indexes:
                manage(stage.settings, "strategy_indexes", "drop")
    return _findings(repeated, scenario)


def _strategies(stage: Stage) -> list[str]:
    chosen = stage.options.get("strategies", "").split()
    return [f"payloadiovs_{name}" for name in chosen or _listed(stage)]


def _listed(stage: Stage) -> list[str]:
    return [entry["name"] for entry in send(stage.url, "GET", "payloadiovs_strategies/")]


def _findings(repeated: Repeated, scenario: str) -> Findings:
    names = list(repeated.runs)
    rates = {name: Spread.of(repeated.values(name, "rate")) for name in names}
    slowest = min(names, key=lambda name: repeated.median(name, "rate"))
    shown = {name: tuple(repeated.median(name, share) for share in ("p50", "p95", "p99")) for name in names}
    return Findings(
        summary=f"{scenario} at random moments: {number(repeated.median(OWN, 'rate'))} lookups a second by {OWN}, "
        f"{number(repeated.median(slowest, 'rate'))} by {slowest}",
        question="Which way to answer a lookup is the fastest under the same load?",
        targets=repeated.targets(names),
        tables=[
            Table(
                f"{scenario}, random moments, {THREADS} threads: median (least–most) of repetitions",
                ("route", *COLUMNS),
                [(name, *repeated.cells(name)) for name in names],
            )
        ],
        plots=[
            plots.bars("Frequency", rates, x="lookups/s", log_x=True),
            plots.percentiles("Response time", shown, x="ms"),
        ],
        runs=repeated.all_runs,
        raw=repeated.raw("route"),
        notes=[
            "Every route answers the same, which is checked. The service takes a short way around Django for its own route "
            "alone; payloadiovs_sql_lateral is the same statement the long way.",
            f"Each was asked for {SECONDS} s a repetition, and until the answers that were under way had come: of slow routes "
            "there are few answers, and their p95 and p99 are the slowest of them. The number is in the column lookups.",
            "`manage.py run`, where all routes are answered by the same processes: `serve` would give the strategies to another "
            "gunicorn than the lookups.",
        ],
        figures={
            f"{name}: {unit}": repeated.values(name, figure)
            for name in names
            for figure, unit in (("rate", "lookups/s"), ("p50", "p50 ms"), ("p99", "p99 ms"))
        },
    )
