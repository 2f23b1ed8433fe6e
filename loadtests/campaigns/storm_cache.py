"""What does the cache save when a whole batch farm starts at once, for each status of the tag that its jobs request?

All jobs of a storm are due at once, each over its own connection, and send the same lookup, which was never
sent before. For a frozen tag nginx may serve the response from its cache, for a locked one during
CDB_LOCKED_MAX_AGE_SECONDS, which is a minute here (by default 0). For an unlocked tag nginx revalidates its
cached response with the service for each request.
"""

import argparse
import re
import time
from functools import partial

from cdb_rest.management.quantities import AT_LEAST_ONE
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests import burst
from loadtests.burst import SHOWN, allow_files
from loadtests.campaigns import options
from loadtests.campaigns.stage import Stage
from loadtests.campaigns.sweep import Sweep
from loadtests.harness import clone_with_statuses, in_turns
from loadtests.recording.outcome import NO_RESPONSE, OK
from loadtests.reporting import plots
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings, Run, Table, Target

STATUSES = ("frozen", "locked", "unlocked")
LOCKED_SECONDS = 60
JOBS, QUICK_JOBS = 10_000, 500
ROUNDS, QUICK_ROUNDS = 3, 1
MAJOR = 2**30
LEAST_SUCCESS = 99.0
CONFIRMED = re.compile(r'status="(200|304)"')
# The figures of a storm, with their headings.
MEASURED = burst.MEASURED | {"by_nginx": "by nginx alone %", "spread_ms": "last began after ms"}


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the size of a storm and the scenario."""
    options.add(parser, "--jobs", "jobs of a storm", JOBS, QUICK_JOBS, metavar="N", **AT_LEAST_ONE)
    options.add(parser, "--scenario", "scenario that is cloned", "moderate", choices=SCENARIOS)


def run(stage: Stage) -> Findings:
    """Run storms on the three tags in alternating order."""
    jobs, scenario, storms = stage.options.jobs, stage.options.scenario, Sweep(("tag",))
    tags = {status: f"storm-{status}-{scenario}" for status in STATUSES}
    allow_files(jobs)
    with stage.serving(scenarios=(scenario,), CDB_LOCKED_MAX_AGE_SECONDS=str(LOCKED_SECONDS)):
        stage.say(f"cloning {scenario}")
        clone_with_statuses(stage.client(), scenario, tags)
        for number, status in in_turns(STATUSES, stage.size(ROUNDS, QUICK_ROUNDS)):
            given = {"jobs": jobs, "scenario": scenario, "global_tag": tags[status]}
            settings = {"start-jobs": "all at once"} | {name: str(value) for name, value in given.items()}
            # A new moment in each storm, which no earlier storm or run has put into the cache.
            moment = {"major": MAJOR, "minor": int(time.time())}
            record = partial(burst.run, stage.url, options=given | moment)
            done = stage.watched(f"{status}, round {number}", record, settings, detailed=number == 1)
            storms.add((status,), done, _figures_of(done, jobs))
            time.sleep(burst.PAUSE_SECONDS)
    return _findings(stage.runs, storms, jobs)


def _figures_of(run: Run, jobs: int) -> dict[str, float | None]:
    """The figures of a storm; `by_nginx` is the percentage of jobs that nginx served from its cache, if it is known."""
    found = burst.figures_of(run.recording, jobs)
    # With 304 the service confirms the response in nginx's cache. Requests that were refused in the queue
    # have no route.
    served = sum(
        value
        for name, value in run.counters.items()
        if name.startswith("cdb_requests_total{") and "/payloadiovs" in name and CONFIRMED.search(name)
    )
    return found | {"by_nginx": 100 * max(0.0, found[OK] - served) / jobs if run.counters else None}


def _findings(runs: list[Run], storms: Sweep, jobs: int) -> Findings:
    rates, rows = storms.spreads("responses_per_s"), storms.rows()
    unanswered, other = (sum(row[name] for row in rows) for name in (NO_RESPONSE, "other"))
    least = 100 * min(storms.values(OK, "frozen")) / jobs
    medians = ", ".join(f"{rate.median:,.0f} on the {status} tag" for status, rate in rates.items())
    columns = {name: name for name in ("tag", "repetition", *SHOWN, "other")}
    return Findings(
        summary=f"Responses per second to {jobs:,} simultaneous jobs: {medians}; {unanswered:,} jobs of {len(runs)} storms "
        "had no response",
        targets=[
            Target("jobs without a response, all storms", unanswered, 0, at_most=True),
            Target("responses that are neither correct nor 504 (retry later)", other, 0, at_most=True),
            Target("correct responses in the worst storm on the frozen tag", least, LEAST_SUCCESS, False, unit="%"),
        ],
        tables=[
            storms.table("Storms", MEASURED),
            Table.of("Each storm", rows, columns | MEASURED),
        ],
        plots=[plots.bars(f"Responses per second, {jobs:,} jobs at once", rates, x="responses/s")],
        runs=runs,
        notes=notes("storm-cache", spread=max(row["spread_ms"] for row in rows)),
        figures=storms.figures(MEASURED),
        raw=rows,
    )
