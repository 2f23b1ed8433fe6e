"""What is the outcome of 100,000 jobs that are launched together?

All jobs are due at the same moment. The generator limits the number of concurrent connections (--together): so
many jobs begin at once, and each of the others when an earlier one has ended, as in a batch farm where slots
become free. The end of a job is counted from the common moment, the duration of a request from its own
beginning.
"""

import argparse
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy

from cdb_rest.management.quantities import AT_LEAST_ONE, IN_SECONDS
from loadtests import metrics
from loadtests.access_log import FLUSH_SECONDS, AccessLog, size_of
from loadtests.campaigns import options
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.campaigns.sweep import Sweep
from loadtests.recording.outcome import WRONG
from loadtests.reporting import plots
from loadtests.reporting.figures import percentile
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings, Run, Table, Target

JOBS, QUICK_JOBS = 100_000, 1_000
TOGETHER, QUICK_TOGETHER = 5_000, 200
WARM_UP_JOBS = 200
# locust starts users at this rate; all users exist before the first job.
SPAWN_RATE = 1_000
PATIENCE_SECONDS = 120
# The percentages of jobs whose end is reported, by the names of figures.
SHARES = {"p50_s": 50.0, "p90_s": 90.0, "p99_s": 99.0, "p999_s": 99.9, "max_s": 100.0}
# The columns of the tables, by the names of `figures_of`.
COLUMNS = {"repetition": "repetition", "jobs": "jobs", "requests": "requests", "failures": "failures", "rate": "jobs/s"}
COLUMNS |= {"busiest": "in the busiest second"}
COLUMNS |= {name: f"{share:g} % ended after, s" for name, share in SHARES.items()}
COUNTS = {"repetition": "repetition", "requests": "sent by the client", "answered": "responses that it got"}
COUNTS |= {"logged": "lines of nginx's log", "passed_on": "of these passed on", "counted": "counted by the service"}
FIGURES = {"rate": "jobs/s", "busiest": "jobs in the busiest second"}
FIGURES |= {"p50_s": "seconds until 50 % had ended", "max_s": "seconds until all had ended"}


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options; with the defaults, each repetition takes some minutes."""
    options.add(parser, "--scenario", "scenario in the tag; none: other data", "moderate", "tiny")
    options.add_content(parser)
    options.add(parser, "--pattern", "pattern of the moments", "random")
    options.add(parser, "--jobs", "number of jobs", JOBS, QUICK_JOBS, **AT_LEAST_ONE)
    options.add(parser, "--together", "concurrent connections", TOGETHER, QUICK_TOGETHER, **AT_LEAST_ONE)
    options.add(parser, "--repetitions", "number of repetitions", 2, 1, **AT_LEAST_ONE)
    options.add(parser, "--processes", "processes of the generator", 1, **AT_LEAST_ONE)
    options.add(parser, "--within", "time in which all jobs must end", 900.0, **IN_SECONDS)


def run(stage: Stage) -> Findings:
    """Warm up, and launch the jobs in each repetition; their number is rounded up to the same one for each connection."""
    given = stage.options
    together = min(given.jobs, given.together)
    each = math.ceil(given.jobs / together)
    with stage.serving(scenarios=(given.scenario,)):
        stage.load("warm-up", _load(given, min(20, together), WARM_UP_JOBS // 20), detailed=False)
        bursts = Sweep(("scenario",))
        for number in range(1, given.repetitions + 1):
            label = f"{together * each:,} jobs together, {number} of {given.repetitions}"
            bursts.add((given.scenario,), *_burst(stage, label, _load(given, together, each)))
    return findings_of(bursts, jobs=together * each, together=together, within=given.within)


def _load(given: argparse.Namespace, together: int, each: int) -> Load:
    settings = {"scenario": given.scenario, "pattern": given.pattern, "jobs-per-user": each, "start-together": True}
    settings |= {"patience": PATIENCE_SECONDS, **options.content(given)}
    processes = min(given.processes, together)
    return Load({"ReconstructionJob": 1}, together, spawn_rate=SPAWN_RATE, options=settings, processes=processes)


def _burst(stage: Stage, label: str, load: Load) -> tuple[Run, dict[str, Any]]:
    path = stage.data / "serve" / "access.log"
    if not stage.host:
        # nginx may still have lines of earlier requests in its buffer.
        time.sleep(FLUSH_SECONDS)
    offset = size_of(path)
    run = stage.load(label, load)
    log = None if stage.host else AccessLog.read(path, offset, count=len(run.recording.answered))
    figures = figures_of(run, log)
    stage.say(f"  all ended after {figures['max_s']:.1f} s, {figures['failures']:,} requests failed")
    return run, figures


def ends_of(run: Run) -> numpy.ndarray:
    """The ends of jobs in seconds after the common moment, which is the beginning of the first job."""
    jobs = run.recording.jobs
    return jobs.end - jobs.begin.min()


def figures_of(run: Run, log: AccessLog | None) -> dict[str, Any]:
    """The figures of a burst: rates, the time in seconds until each of `SHARES` of the jobs had ended, and counts.

    `log` is nginx's access log, None for a remote deployment; its counts are then None.
    """
    requests, ends = run.recording.requests, ends_of(run)
    return {
        "jobs": len(ends),
        "requests": len(requests),
        "failures": requests.failures,
        "wrong": requests.counts[WRONG],
        "rate": len(ends) / float(ends.max()),
        "busiest": int(numpy.bincount(ends.astype(int)).max()),
        **{name: percentile(ends, share) for name, share in SHARES.items()},
        "answered": len(requests.answered),
        "logged": None if log is None else len(log),
        "passed_on": None if log is None else int(log.passed_on.sum()),
        "counted": round(metrics.total(run.counters, "cdb_requests_total", without=metrics.WATCHING)),
    }


def findings_of(bursts: Sweep, *, jobs: int, together: int, within: float) -> Findings:
    """The findings for `jobs` jobs with `together` concurrent connections, all of which had to end `within` seconds."""
    runs, rows = bursts.runs, bursts.rows()
    first, begins = rows[0], numpy.sort(runs[0].recording.jobs.begin)
    share = 100 * (1 - sum(row["failures"] for row in rows) / sum(row["requests"] for row in rows))
    shares = numpy.linspace(0, 100, 200)
    ended = {run.label: list(zip(numpy.percentile(ends_of(run), shares), shares, strict=True)) for run in runs}
    return Findings(
        summary=f"{jobs:,} jobs that were due together had all ended after {first['max_s']:.1f} s, "
        f"{first['busiest']:,} of them in the busiest second; {share:.3f} % of the requests got the correct response",
        question=f"What is the outcome of {jobs:,} jobs that are launched together?",
        targets=_targets(rows, jobs, within),
        tables=[
            Table.of("Jobs that are due together", rows, COLUMNS),
            Table.of("The client's count against the server's", rows, COUNTS),
        ],
        plots=[plots.lines("Jobs that had ended", ended, x="time since all were due, s", y="share of the jobs, %")],
        runs=runs,
        notes=notes("peak", jobs=jobs, together=together, begun=begins[min(together, len(begins)) - 1] - begins[0]),
        figures=bursts.figures(FIGURES),
        raw=rows,
    )


def _targets(rows: Sequence[dict[str, Any]], jobs: int, within: float) -> list[Target]:
    failures, wrong = (sum(row[name] for row in rows) for name in ("failures", "wrong"))
    targets = [
        Target("jobs that did not end", max(abs(jobs - row["jobs"]) for row in rows), 0, at_most=True),
        Target("requests without the correct response", failures, 0, at_most=True),
        Target("of these, with wrong content", wrong, 0, at_most=True),
        Target("time until all jobs had ended", max(row["max_s"] for row in rows), within, True, unit="s"),
    ]
    logged = [row for row in rows if row["logged"] is not None]
    if logged:
        unlogged = max(abs(row["answered"] - row["logged"]) for row in logged)
        uncounted = max(abs(row["counted"] - row["passed_on"]) for row in logged)
        targets += [
            Target("responses: difference between client and nginx's log", unlogged, 0, at_most=True),
            Target("requests passed on: difference between nginx and the service", uncounted, 0, at_most=True),
        ]
    return targets
