"""Which lookup strategy is the fastest under the same load?

The campaign compares the normal route with those of all strategies, which exist with CDB_STRATEGIES.
"""

import argparse

from loadtests.campaigns.api import send
from loadtests.campaigns.lookups import Repeated, add_scenario, lookups_alone, warm_up
from loadtests.campaigns.stage import Stage
from loadtests.reporting import plots
from loadtests.reporting.figures import Spread, number
from loadtests.reporting.findings import Findings
from loadtests.rig import in_turns
from loadtests.service import manage

TITLE = "Strategies"
SCENARIO, QUICK_SCENARIO = "heavy-usage", "moderate"
THREADS, SECONDS, REPETITIONS = 8, 8, 2
OWN = "payloadiovs"
# For eight concurrent lookups by the slowest strategy, each of which takes several seconds alone.
PATIENCE_SECONDS = 120


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the tag and the strategies."""
    add_scenario(parser, SCENARIO)
    parser.add_argument(
        "--strategies", nargs="+", metavar="NAME", help="strategies to compare with the normal route (default: all)"
    )


def run(stage: Stage) -> Findings:
    """Measure every strategy for a fixed time."""
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
        summary=f"{scenario} at random moments: {number(repeated.median(OWN, 'rate'))} lookups per second by {OWN}, "
        f"{number(repeated.median(slowest, 'rate'))} by {slowest}",
        targets=repeated.targets(names),
        tables=[repeated.table(f"{scenario}, random moments, {THREADS} threads", ("route",), names)],
        plots=[
            plots.bars("Frequency", rates, x="lookups/s", log_x=True),
            plots.percentiles("Response time", shown, x="ms"),
        ],
        runs=repeated.all_runs,
        raw=repeated.raw("route"),
        notes=[
            "All routes return the same response, which is checked. Only the normal route uses the fast lookup, which bypasses "
            "Django; payloadiovs_sql_lateral executes the same statement through Django.",
            f"Each repetition lasted {SECONDS} s, and until all requests in progress had a response. Slow routes have few "
            "responses, so that p95 and p99 are the slowest of them; the column lookups has the number.",
            "The service is `manage.py run`, where the same processes serve all routes: with `serve`, the strategies would be "
            "served by another gunicorn than the lookups.",
        ],
        figures=repeated.figures(names, "{}", ("rate", "p50", "p99")),
    )
