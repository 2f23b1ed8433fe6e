"""The campaigns with closed loops: each client sends its next request after the response to the last one.

The docstring of a campaign begins with its question.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from cdb_rest.management.quantities import Number
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.campaigns import options
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.campaigns.sweep import Point, Sweep
from loadtests.content.tags import sized_tag
from loadtests.reporting import plots
from loadtests.reporting.figures import number
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings
from loadtests.service import manage

# For each campaign the full size and that with --quick: threads, calls of each, repetitions, and so on.
PATTERNS = ("first", "random", "last")
SCENARIOS_SIZE, QUICK_SCENARIOS_SIZE = (50, 50, 3), (10, 5, 1)
THREADS, QUICK_THREADS = (1, 2, 5, 10, 50, 100, 500), (1, 4, 16)
CALLS, QUICK_CALLS = 10_000, 160
# A single thread would take minutes for all calls, without giving more precise figures.
MOST_CALLS_EACH = 2_000
PROCESSES, QUICK_PROCESSES = (1, 2, 3, 4), (1, 2)
CLIENTS, QUICK_CLIENTS = (1, 2, 4, 8, 16, 32), (1, 4)
TYPES, QUICK_TYPES = (1, 10, 50, 100, 200), (1, 10)
IOVS, QUICK_IOVS = (10, 100, 1_000, 10_000), (10, 50)
REPETITIONS = 2
# With --quick, a number of lookups per thread instead of a time, so that there are responses on a slow machine too.
QUICK_LOOKUPS = 10
# A generator process that uses more of a core is late by itself.
BUSY_GENERATOR = 0.8
# For eight concurrent lookups by the slowest strategy, each of which takes several seconds alone.
PATIENCE_SECONDS = 120
OWN_ROUTE = "payloadiovs"


def _jobs(tag: str, threads: int, calls: int, pattern: str) -> Load:
    """A load of threads with a number of jobs each: the list of global tags, then a lookup."""
    settings = {"jobs-per-user": calls, "global-tag": tag, "pattern": pattern}
    return Load({"ReconstructionJob": 1}, threads, options=settings)


def _lookups(stage: Stage, tag: str, threads: int, seconds: float, **more: str | float) -> Load:
    """A load of threads that send only lookups, at random moments by default; `more` are options of the user."""
    length = {"jobs-per-user": QUICK_LOOKUPS} if stage.quick else {}
    return Load({"StudyLookup": 1}, threads, stage.size(seconds, None), options={"global-tag": tag, **more, **length})


def scenarios_options(parser: argparse._ArgumentGroup) -> None:
    """Add the option for the tags."""
    _add_scenarios(parser, "--scenarios", tuple(SCENARIOS), ("tiny", "tiny-moderate"))


def _add_scenarios(parser: argparse._ArgumentGroup, flag: str, full: Sequence[str], quick: Sequence[str]) -> None:
    options.add(parser, flag, "scenarios to measure", full, quick, nargs="+", choices=tuple(SCENARIOS))


def scenarios(stage: Stage) -> Findings:
    """How many lookups per second does the service serve, and how fast, for tags of every size and pattern of moments?

    This is the table of the load study (docs/load-tests.md): five scenarios by three patterns of moments, 50
    threads with 50 calls each. A call is the lookup of a job. Like the C++ client, each job first requests the list
    of global tags over a separate connection, which is part of the load here but is not counted.
    """
    names = stage.options.scenarios
    threads, calls, repetitions = stage.size(SCENARIOS_SIZE, QUICK_SCENARIOS_SIZE)
    largest = (names[-1], "random")
    # The report has the details of one run only.
    points = [
        Point((name, pattern), _jobs(name, threads, calls, pattern), detailed=(name, pattern) == largest)
        for name, pattern in product(names, PATTERNS)
    ]
    sweep = Sweep(("scenario", "moments"), "{}, {}")
    sweep.measure(stage, points, repetitions)
    columns: dict[str, Callable[..., Any]] = {
        "IOVs": lambda name, _: SCENARIOS[name].iovs,
        "remark": lambda *point: "" if sweep.median("rows", *point) else "nothing is valid yet",
    }
    axes = {
        "place": lambda name, pattern: (pattern, SCENARIOS[name].iovs),
        "x": f"IOVs in the tag ({', '.join(names)})",
    }
    return sweep.findings(
        f"{largest[0]} at random moments: {number(sweep.median('rate', *largest))} lookups per second, p99 "
        f"{number(sweep.median('p99', *largest))} ms",
        sweep.table(f"{threads} threads × {calls} calls", **columns),
        [
            sweep.scaling("Mean frequency", "rate", y="lookups/s", **axes),
            sweep.scaling("Response time, p95", "p95", y="ms", **axes),
            plots.bars("Mean frequency by scenario and moments", sweep.spreads("rate"), x="lookups/s"),
        ],
        notes("scenarios", threads=threads, repetitions=repetitions),
        figures=("rate", "p50", "p99"),
        # Random data have no row that is valid at the first moment.
        empty=[(name, "first") for name in names],
    )


def threads_options(parser: argparse._ArgumentGroup) -> None:
    """Add the option for the tag."""
    options.add(parser, "--scenario", "scenario of the tag", "worst-case", "tiny", choices=list(SCENARIOS))


def threads(stage: Stage) -> Findings:
    """How do frequency and response time grow with the number of concurrent clients?

    1 to 500 threads share 10,000 calls, with at most 2,000 each. A call is the lookup of a job, which first
    requests the list of global tags.
    """
    name = stage.options.scenario
    counts, calls = stage.size((THREADS, CALLS), (QUICK_THREADS, QUICK_CALLS))
    loads = {count: _jobs(name, count, min(calls // count, MOST_CALLS_EACH), "random") for count in counts}
    sweep = Sweep(("threads",), "{} threads")
    points = [Point((count,), load, detailed=count == counts[-1]) for count, load in loads.items()]
    sweep.measure(stage, points, stage.size(REPETITIONS, 1))
    best = max(counts, key=lambda count: sweep.median("rate", count))
    busy = [str(count) for count in counts if (sweep.median("cores", count) or 0) > BUSY_GENERATOR]
    return sweep.findings(
        f"{name} at random moments: at most {number(sweep.median('rate', best))} lookups per second, with {best} threads; p99 "
        f"with {counts[-1]}: {number(sweep.median('p99', counts[-1]))} ms",
        sweep.table(f"{name}, {calls:,} calls in all"),
        [
            sweep.scaling("Frequency", "rate", "peak", y="lookups/s"),
            sweep.scaling("Response time", "p50", "p95", "p99", y="ms"),
            sweep.scaling("The generator's CPU: at most one core", "cores", y="cores", log_y=False),
        ],
        notes("threads", local=not stage.host, busy=busy, limit=f"{BUSY_GENERATOR:.0%}", most=MOST_CALLS_EACH),
        figures=("rate", "p50", "p95", "p99"),
    )


def workers(stage: Stage) -> Findings:
    """Which number of processes of granian and of clients gives the most responses, and how long do these take?

    The service is started for each number of processes, with `manage.py run`, where granian serves all
    requests. With `serve`, gunicorn serves some of them, and the number of its processes would not grow in proportion.
    """
    name = stage.options.scenario
    sizes = product(*stage.size((PROCESSES, CLIENTS), (QUICK_PROCESSES, QUICK_CLIENTS)))
    points = [Point(size, _lookups(stage, name, size[1], seconds=4), workers=size[0]) for size in sizes]
    sweep = Sweep(("processes", "threads"), "{} processes, {} threads")
    sweep.measure(stage, points, stage.size(REPETITIONS, 1), command="run")
    best = max(sweep.measured, key=lambda point: sweep.median("rate", *point))
    return sweep.findings(
        f"{name} at random moments: at most {number(sweep.median('rate', *best))} lookups per second, with {best[0]} processes "
        f"and {best[1]} threads; p95 {number(sweep.median('p95', *best))} ms",
        sweep.table(name),
        [
            sweep.scaling("Frequency", "rate", y="lookups/s", log_y=False),
            sweep.scaling("Response time, p95", "p95", y="ms"),
        ],
        notes("workers"),
        figures=("rate", "p95"),
    )


def types_iovs_options(parser: argparse._ArgumentGroup) -> None:
    """Add the option for the numbers of IOVs."""
    text = "IOVs of each payload type; 26000 takes minutes and gigabytes at first"
    options.add(parser, "--iovs", text, IOVS, QUICK_IOVS, action=Number, kind=int, least=1, nargs="+", metavar="N")


def types_iovs(stage: Stage) -> Findings:
    """How does the time of a lookup depend on the number of payload types and of IOVs of each type?"""
    types, iovs, clients = stage.size(TYPES, QUICK_TYPES), stage.options.iovs, 4
    sizes = list(product(types, iovs))
    points = [Point(size, _lookups(stage, sized_tag("sized", *size), clients, seconds=3)) for size in sizes]
    sweep = Sweep(("payload types", "IOVs of each"), "{} types × {} IOVs")
    sweep.measure(stage, points, stage.size(REPETITIONS, 1))
    return sweep.findings(
        f"{types[-1]} payload types with {iovs[-1]:,} IOVs of each: p50 {number(sweep.median('p50', types[-1], iovs[-1]))} ms; "
        f"with {iovs[0]} IOVs of each {number(sweep.median('p50', types[-1], iovs[0]))} ms",
        sweep.table(f"Lookups at random moments, {clients} threads", IOVs=lambda count, each: count * each),
        [
            sweep.scaling("Response time, p50", "p50", y="ms"),
            sweep.scaling("Frequency", "rate", y="lookups/s"),
        ],
        notes("types-iovs", clients=clients),
        figures=("rate", "p50"),
        # A list of few IOVs often begins after a random moment, so that a single type may have no row on average.
        empty=[size for size in sizes if size[0] == 1],
    )


def endpoints_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the tags, the moments and the strategies."""
    _add_scenarios(parser, "--scenario", ("heavy-usage",), ("moderate",))
    options.add(parser, "--pattern", "pattern of the moments", "random", choices=PATTERNS)
    text = "strategies to compare with the normal route (default: all)"
    parser.add_argument("--strategies", nargs="+", default=[], metavar="NAME", help=text)


def endpoints(stage: Stage) -> Findings:
    """What do the lookup strategies cost, by scenario and pattern of moments, under the same load?

    The campaign compares the normal route with those of all strategies, which exist with CDB_STRATEGIES.
    """
    names, pattern, clients, seconds = stage.options.scenario, stage.options.pattern, 8, 8
    with stage.serving(scenarios=names, command="run"):
        listed = stage.client().call("GET", "payloadiovs_strategies/").json
    strategies = stage.options.strategies or [entry["name"] for entry in listed]
    more = {"pattern": pattern, "patience": PATIENCE_SECONDS}
    points = [
        Point((name, route), _lookups(stage, name, clients, seconds, route=f"{route}/", **more))
        for name, route in product(names, [OWN_ROUTE, *(f"payloadiovs_{strategy}" for strategy in strategies)])
    ]
    sweep = Sweep(("scenario", "route"), "{}, {}")
    try:
        if not stage.host:
            manage(stage.settings, "strategy_indexes", "create")
        sweep.measure(stage, points, stage.size(REPETITIONS, 1), command="run")
    finally:
        if not stage.host:
            manage(stage.settings, "strategy_indexes", "drop")
    rates = sweep.spreads("rate")
    own, slowest = sweep.label.format(names[-1], OWN_ROUTE), min(rates, key=lambda label: rates[label].median)
    axes = {"place": lambda name, route: (route, SCENARIOS[name].iovs), "x": "IOVs in the tag"}
    return sweep.findings(
        f"moments {pattern}: {number(rates[own].median)} lookups per second by {own}, "
        f"{number(rates[slowest].median)} by {slowest}",
        sweep.table(f"Moments {pattern}, {clients} threads"),
        [
            plots.bars("Frequency", rates, x="lookups/s", log_x=True),
            plots.bars("Response time, p95", sweep.spreads("p95"), x="ms", log_x=True),
            *([sweep.scaling("Response time, p50", "p50", y="ms", **axes)] if len(names) > 1 else []),
        ],
        notes("endpoints", seconds=seconds),
        figures=("rate", "p50", "p99"),
        # Random data have no row that is valid at the first moment.
        empty=list(sweep.measured) if pattern == "first" else (),
    )
