"""How do frequency and response time grow with the number of concurrent clients?

1 to 500 threads share 10,000 calls, with at most 2,000 each. A call is the lookup of a job, which first
requests the list of global tags.
"""

import argparse
from collections.abc import Iterator

from loadtests.campaigns.locusts import Load
from loadtests.campaigns.lookups import Repeated, add_scenario, warm_up
from loadtests.campaigns.stage import Stage
from loadtests.reporting import plots
from loadtests.reporting.figures import number
from loadtests.reporting.findings import Findings
from loadtests.reporting.result import Plot
from loadtests.rig import in_turns

TITLE = "Threads"
SCENARIO, THREADS, CALLS, REPETITIONS = "worst-case", (1, 2, 5, 10, 50, 100, 500), 10_000, 2
QUICK_SCENARIO, QUICK_THREADS, QUICK_CALLS = "tiny", (1, 4, 16), 160
# A single thread would take minutes for all calls, without giving more precise figures.
MOST_CALLS_EACH = 2_000
TIMES = ("p50", "p95", "p99")
# A generator process that uses more of a core is late by itself.
BUSY_GENERATOR = 0.8


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the option for the tag."""
    add_scenario(parser, SCENARIO)


def run(stage: Stage) -> Findings:
    """Measure every number of threads."""
    counts, calls = (QUICK_THREADS, QUICK_CALLS) if stage.quick else (THREADS, CALLS)
    scenario = stage.options.get("scenario", QUICK_SCENARIO if stage.quick else SCENARIO)
    repeated = Repeated()
    with stage.serving(scenarios=(scenario,)):
        for turn, threads in in_turns(counts, 1 if stage.quick else REPETITIONS):
            warm_up(stage, scenario, "random")
            load = Load(
                {"ReconstructionJob": 1}, count=threads,
                options={"jobs-per-user": min(calls // threads, MOST_CALLS_EACH), "global-tag": scenario, "pattern": "random"},
            )  # fmt: skip
            # The report has the details of one run only.
            detailed = (turn, threads) == (1, counts[-1])
            repeated.add(threads, stage.load(f"{threads} threads, {turn}", load, detailed=detailed))
    return _findings(repeated, scenario, calls)


def _findings(repeated: Repeated, scenario: str, calls: int) -> Findings:
    counts = sorted(repeated.runs)
    best = max(counts, key=lambda threads: repeated.median(threads, "rate"))
    busy = [threads for threads in counts if (repeated.median(threads, "cores") or 0) > BUSY_GENERATOR]
    return Findings(
        summary=f"{scenario} at random moments: at most {number(repeated.median(best, 'rate'))} lookups per second, with {best} "
        f"threads; p99 with {counts[-1]}: {number(repeated.median(counts[-1], 'p99'))} ms",
        targets=repeated.targets(counts),
        tables=[repeated.table(f"{scenario}, {calls:,} calls in all", ("threads",), counts)],
        plots=list(_plots(repeated, counts)),
        runs=repeated.all_runs,
        raw=repeated.raw("threads"),
        notes=_notes(busy),
        figures=repeated.figures(counts, "{} threads", ("rate", *TIMES)),
    )


def _plots(repeated: Repeated, counts: list[int]) -> Iterator[Plot]:
    def series(name: str) -> list[tuple[float, list[float]]]:
        return [(threads, repeated.values(threads, name)) for threads in counts]

    rates = {"mean": series("rate"), "busiest second": series("peak")}
    # Short runs have no busiest second and no samples of the generator.
    measured = {name: points for name, points in rates.items() if any(values for _, values in points)}
    yield plots.scaling("Frequency", measured, x="threads", y="lookups/s")
    yield plots.scaling("Response time", {name: series(name) for name in TIMES}, x="threads", y="ms")
    cores = [point for point in series("cores") if point[1]]
    if cores:
        title = "The generator's CPU: at most one core"
        yield plots.scaling(title, {"generator": cores}, x="threads", y="cores", log_y=False)


def _notes(busy: list[int]) -> list[str]:
    verdict = (
        f"The generator used more than {BUSY_GENERATOR:.0%} of a core with {', '.join(map(str, busy))} threads: there it, not "
        "the service, may be the bottleneck."
        if busy
        else f"The generator used less than {BUSY_GENERATOR:.0%} of a core: it was not the bottleneck."
    )
    return [
        "Once all cores are busy, more threads only wait: the frequency is constant and the response time grows in proportion.",
        "All threads of the generator are in one process, which uses one core at most. Generator and service share the machine. "
        f"{verdict}",
        f"No thread makes more than {MOST_CALLS_EACH:,} calls, so that the total is smaller with few threads.",
    ]
