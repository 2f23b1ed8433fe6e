"""How many lookups per second does the service serve, and how fast, for tags of every size and each pattern of moments?

This is the table of the load study (docs/load-tests.md): five scenarios by three patterns of moments, 50
threads with 50 calls each. A call is the lookup of a job. Like the C++ client, each job first requests the list
of global tags over a separate connection, which is part of the load here but is not counted.
"""

import argparse
from collections.abc import Iterator
from itertools import product

from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.lookups import COLUMNS, Repeated, warm_up
from loadtests.campaigns.stage import Stage
from loadtests.reporting import plots
from loadtests.reporting.figures import Spread, number
from loadtests.reporting.findings import Findings
from loadtests.reporting.result import Plot, Table
from loadtests.rig import in_turns

TITLE = "Scenarios and patterns"
PATTERNS = ("first", "random", "last")
THREADS, CALLS, REPETITIONS = 50, 50, 3
QUICK_SCENARIOS, QUICK_THREADS, QUICK_CALLS, QUICK_REPETITIONS = ("tiny", "tiny-moderate"), 10, 5, 1

Point = tuple[str, str]


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the option for the tags."""
    parser.add_argument("--scenarios", nargs="+", choices=list(SCENARIOS), help="scenarios to measure (default: all)")


def run(stage: Stage) -> Findings:
    """Measure every scenario with every pattern."""
    chosen = stage.options.get("scenarios", "").split()
    scenarios = tuple(chosen) or (QUICK_SCENARIOS if stage.quick else tuple(SCENARIOS))
    threads, calls = (QUICK_THREADS, QUICK_CALLS) if stage.quick else (THREADS, CALLS)
    points, repeated = list(product(scenarios, PATTERNS)), Repeated()
    with stage.serving(scenarios=scenarios):
        for turn, (scenario, pattern) in in_turns(points, QUICK_REPETITIONS if stage.quick else REPETITIONS):
            warm_up(stage, scenario, pattern)
            load = Load(
                {"ReconstructionJob": 1}, count=threads,
                options={"jobs-per-user": calls, "global-tag": scenario, "pattern": pattern},
            )  # fmt: skip
            # The report has the details of one run only.
            detailed = (turn, scenario, pattern) == (1, scenarios[-1], "random")
            label = f"{scenario}, {pattern}, {turn}"
            repeated.add((scenario, pattern), stage.load(label, load, detailed=detailed))
    return _findings(repeated, scenarios, threads, calls)


def _findings(repeated: Repeated, scenarios: tuple[str, ...], threads: int, calls: int) -> Findings:
    largest = (scenarios[-1], "random")
    rate, slow = repeated.median(largest, "rate"), repeated.median(largest, "p99")
    return Findings(
        summary=f"{largest[0]} at random moments: {number(rate)} lookups per second, p99 {number(slow)} ms",
        # Random data have no row that is valid at the first moment.
        targets=repeated.targets([point for point in repeated.runs if point[1] != "first"]),
        tables=[_table(repeated, threads, calls)],
        plots=list(_plots(repeated, scenarios)),
        runs=repeated.all_runs,
        raw=repeated.raw("scenario", "moments"),
        notes=_notes(repeated, threads),
        figures=repeated.figures(list(repeated.runs), "{}, {}", ("rate", "p50", "p99")),
    )


def _table(repeated: Repeated, threads: int, calls: int) -> Table:
    rows = []
    # In the order of the first repetition.
    for scenario, pattern in repeated.runs:
        remark = "" if repeated.median((scenario, pattern), "rows") else "nothing is valid yet"
        size = SCENARIOS[scenario].iovs
        rows.append((scenario, size, pattern, *repeated.cells((scenario, pattern)), remark))
    title = f"{threads} threads × {calls} calls: median (least–most) of repetitions"
    return Table(title, ("scenario", "IOVs", "moments", *COLUMNS, "remark"), rows)


def _plots(repeated: Repeated, scenarios: tuple[str, ...]) -> Iterator[Plot]:
    for name, title, unit in (("rate", "Mean frequency", "lookups/s"), ("p95", "Response time, p95", "ms")):
        series = {
            pattern: [(SCENARIOS[scenario].iovs, repeated.values((scenario, pattern), name)) for scenario in scenarios]
            for pattern in PATTERNS
        }
        yield plots.scaling(title, series, x=f"IOVs in the tag ({', '.join(scenarios)})", y=unit)
    rates = {
        f"{scenario}, {pattern}": Spread.of(repeated.values((scenario, pattern), "rate"))
        for scenario, pattern in product(scenarios, PATTERNS)
    }
    yield plots.bars("Mean frequency by scenario and moments", rates, x="lookups/s")


def _notes(repeated: Repeated, threads: int) -> list[str]:
    times = max(len(runs) for runs in repeated.runs.values())
    return [
        "first is the moment (0, 0), where nothing is valid in random data: the correct response is empty, and fast for that "
        "reason. last is (2^31-1, 2^31-1), random is uniform below it.",
        "A call is a lookup. Like the C++ client, each job requests the list of global tags before it, so that the service "
        "serves twice as many requests as there are lookups. Failed requests of both kinds are counted.",
        f"All {threads} threads start at once, and each sends its next request after the response to the last one (a closed "
        "loop). The mean frequency is the number of calls divided by the wall time, until the slowest thread has ended.",
        f"Each point was measured {times} times, in alternating order, each time after a second of other lookups.",
    ]
