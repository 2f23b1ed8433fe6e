"""How do frequency and response time depend on the number of gunicorn processes and of clients?

The service is started for each number of processes, with `manage.py run`, where one gunicorn serves all
requests. `serve` has two of them, and the number of processes of the second one would not grow in proportion.
"""

import argparse
from itertools import product

from loadtests.campaigns.lookups import Repeated, add_scenario, lookups_alone, warm_up
from loadtests.campaigns.stage import Stage
from loadtests.reporting import plots
from loadtests.reporting.figures import number
from loadtests.reporting.findings import Findings
from loadtests.reporting.result import Plot
from loadtests.rig import in_turns

TITLE = "Processes and threads"
SCENARIO, PROCESSES, THREADS, SECONDS, REPETITIONS = "worst-case", (1, 2, 3, 4), (1, 2, 4, 8, 16, 32), 4, 2
QUICK_SCENARIO, QUICK_PROCESSES, QUICK_THREADS = "tiny", (1, 2), (1, 4)


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the option for the tag."""
    add_scenario(parser, SCENARIO)


def run(stage: Stage) -> Findings:
    """Measure every pair of numbers."""
    scenario = stage.options.get("scenario", QUICK_SCENARIO if stage.quick else SCENARIO)
    processes, threads = (QUICK_PROCESSES, QUICK_THREADS) if stage.quick else (PROCESSES, THREADS)
    repeated = Repeated()
    for turn, count in in_turns(processes, 1 if stage.quick else REPETITIONS):
        with stage.serving(scenarios=(scenario,), command="run", CDB_WORKERS=str(count)):
            warm_up(stage, scenario, "random")
            for clients in threads:
                load = lookups_alone(stage, scenario, clients, SECONDS)
                label = f"{count} processes, {clients} threads, {turn}"
                repeated.add((count, clients), stage.load(label, load, detailed=False))
    return _findings(repeated, scenario, processes, threads)


def _findings(repeated: Repeated, scenario: str, processes: tuple[int, ...], threads: tuple[int, ...]) -> Findings:
    points = list(product(processes, threads))
    best = max(points, key=lambda point: repeated.median(point, "rate"))
    return Findings(
        summary=f"{scenario} at random moments: at most {number(repeated.median(best, 'rate'))} lookups per second, with "
        f"{best[0]} processes and {best[1]} threads",
        targets=repeated.targets(points),
        tables=[repeated.table(scenario, ("processes", "threads"), points)],
        plots=_plots(repeated, processes, threads),
        runs=repeated.all_runs,
        raw=repeated.raw("processes", "threads"),
        notes=[
            "Threads are those of the client; each sends its next lookup after the response to the last one, over a new "
            "connection. Each gunicorn process has four threads.",
            "Client, gunicorn and PostgreSQL share the cores of one machine: more processes than cores have little effect "
            "here. The load study (docs/load-tests.md) used a machine for each: there the frequency rose in proportion to the "
            "processes.",
            "The service is started for each number of processes, in alternating order, and is warmed up for a second.",
        ],
        figures=repeated.figures(points, "{} processes, {} threads", ("rate", "p95")),
    )


def _plots(repeated: Repeated, processes: tuple[int, ...], threads: tuple[int, ...]) -> list[Plot]:
    axes = {"x": "threads of the client", "y": "gunicorn processes"}
    surfaces = [
        plots.surface(
            title, processes, threads,
            [[repeated.median((count, clients), name) for clients in threads] for count in processes],
            unit=unit, **axes,
        )
        for name, title, unit in (("rate", "Frequency", "lookups/s"), ("p95", "Response time, p95", "ms"))
    ]  # fmt: skip
    series = {
        f"{count} processes": [(clients, repeated.values((count, clients), "rate")) for clients in threads]
        for count in processes
    }
    scaling = plots.scaling("Frequency, with its spread", series, x=axes["x"], y="lookups/s", log_y=False)
    return [*surfaces, scaling]
