"""How does the time of a lookup depend on the number of payload types and of IOVs of each type?"""

import argparse
from itertools import product

from cdb_rest.management.quantities import Number
from loadtests.campaigns.lookups import COLUMNS, Repeated, lookups_alone, warm_up
from loadtests.campaigns.stage import Stage
from loadtests.content.tags import sized_tag
from loadtests.reporting import plots
from loadtests.reporting.figures import number
from loadtests.reporting.findings import Findings
from loadtests.reporting.result import Plot, Table
from loadtests.rig import in_turns

TITLE = "Payload types and IOVs"
TYPES, IOVS, MORE_IOVS = (1, 10, 50, 100, 200), (10, 100, 1_000, 10_000), 26_000
THREADS, SECONDS, REPETITIONS = 4, 3, 2
QUICK_TYPES, QUICK_IOVS = (1, 10), (10, 50)


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the option for the numbers of IOVs."""
    parser.add_argument(
        "--iovs", action=Number, kind=int, least=1, nargs="+", metavar="N",
        help=f"IOVs of each payload type (default: {' '.join(map(str, IOVS))}; {MORE_IOVS} takes minutes and gigabytes at first)",
    )  # fmt: skip


def run(stage: Stage) -> Findings:
    """Measure every pair of numbers."""
    types, iovs = (QUICK_TYPES, QUICK_IOVS) if stage.quick else (TYPES, IOVS)
    if "iovs" in stage.options:
        iovs = tuple(map(int, stage.options["iovs"].split()))
    points, repeated = list(product(types, iovs)), Repeated()
    with stage.serving(scenarios=tuple(sized_tag("sized", *point) for point in points)):
        for turn, point in in_turns(points, 1 if stage.quick else REPETITIONS):
            tag = sized_tag("sized", *point)
            warm_up(stage, tag, "random")
            load = lookups_alone(stage, tag, THREADS, SECONDS)
            repeated.add(point, stage.load(f"{point[0]} types, {point[1]} IOVs of each, {turn}", load, detailed=False))
    return _findings(repeated, types, iovs)


def _findings(repeated: Repeated, types: tuple[int, ...], iovs: tuple[int, ...]) -> Findings:
    points, most = list(product(types, iovs)), (types[-1], iovs[-1])
    rows = [(*point, point[0] * point[1], *repeated.cells(point)) for point in points]
    return Findings(
        summary=f"{most[0]} payload types with {most[1]:,} IOVs of each: p50 {number(repeated.median(most, 'p50'))} ms; with "
        f"{iovs[0]} IOVs of each {number(repeated.median((types[-1], iovs[0]), 'p50'))} ms",
        # A list of few IOVs often begins after a random moment, so that a single type may have no row on average.
        targets=repeated.targets([point for point in points if point[0] > 1]),
        tables=[
            Table(
                f"Lookups at random moments, {THREADS} threads: median (least–most) of repetitions",
                ("payload types", "IOVs of each", "IOVs", *COLUMNS),
                rows,
            )
        ],
        plots=_plots(repeated, types, iovs),
        runs=repeated.all_runs,
        raw=repeated.raw("payload_types", "iovs_of_each"),
        notes=[
            "Every pair is a separate tag in one database, in the random layout. The tags are kept for the next run.",
            "With n IOVs of a type, a random moment is before the first of them once in n + 1 times: responses have fewer "
            "rows than there are types.",
            f"{THREADS} threads send only lookups, each over a new connection, so that the response time includes little "
            "waiting in queues.",
        ],
        figures=repeated.figures(points, "{} types × {} IOVs", ("rate", "p50")),
    )


def _plots(repeated: Repeated, types: tuple[int, ...], iovs: tuple[int, ...]) -> list[Plot]:
    surfaces = [
        plots.surface(
            title, types, iovs, [[repeated.median((count, each), name) for each in iovs] for count in types],
            x="IOVs of each payload type", y="payload types", unit=unit,
        )
        for name, title, unit in (("p50", "Response time, p50", "ms"), ("rate", "Frequency", "lookups/s"))
    ]  # fmt: skip
    series = {f"{count} types": [(each, repeated.values((count, each), "p50")) for each in iovs] for count in types}
    return [*surfaces, plots.scaling("Response time, p50", series, x="IOVs of each payload type", y="ms")]
