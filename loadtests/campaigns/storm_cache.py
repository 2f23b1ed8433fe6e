"""What does the cache save when a whole batch farm starts at once, for each status of the tag that its jobs request?

All jobs of a storm are due at once, each over its own connection, and send the same lookup, which was never
sent before. For a frozen tag nginx may serve the response from its cache, for a locked one during
CDB_LOCKED_MAX_AGE_SECONDS, which is a minute here (by default 0). For an unlocked tag nginx revalidates its
cached response with the service for each request.
"""

import argparse
import json
import re
import resource
import time
from dataclasses import dataclass
from functools import partial

from cdb_rest.management.quantities import Number
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests import burst
from loadtests.campaigns.stage import Stage
from loadtests.client import Client
from loadtests.recording import outcome
from loadtests.reporting import plots
from loadtests.reporting.figures import Spread, percentile
from loadtests.reporting.findings import Findings, Run
from loadtests.reporting.result import Table, Target
from loadtests.service import ServiceError

TITLE = "Storm and cache"
STATUSES, UNLOCKED = ("frozen", "locked", "unlocked"), {"status": "unlocked"}
LOCKED_SECONDS = 60
JOBS, QUICK_JOBS = 10_000, 500
ROUNDS, QUICK_ROUNDS = 3, 1
# Open files of a process besides the connections of its jobs.
SPARE_FILES = 512
# The kernel's queues must be empty before the next storm.
PAUSE_SECONDS = 2.0
MAJOR = 2**30
LEAST_SUCCESS = 99.0
GOOD = re.compile(r'status="(200|304)"')


@dataclass(frozen=True)
class Storm:
    """One storm.

    `answers_per_s` are correct responses per second until the last one; `p50_ms`, `p99_ms` and `last_ms` are
    measured from the begin of the storm. `by_nginx` is the percentage of jobs that nginx served from its cache
    (None without counters), `spread_ms` the time from the begin of the first job to that of the last one.
    """

    status: str
    jobs: int
    outcomes: dict[str, int]
    answers_per_s: float
    p50_ms: float
    p99_ms: float
    last_ms: float
    by_nginx: float | None
    spread_ms: float

    @classmethod
    def of(cls, status: str, jobs: int, run: Run) -> "Storm":
        """The figures of a storm, from its recording and counters."""
        requests = run.recording.requests
        outcomes = {name: int((requests.outcomes == name).sum()) for name in outcome.OUTCOMES}
        times = requests.milliseconds.tolist()
        good = outcomes[outcome.OK]
        # With 304 the service confirms the response in nginx's cache. Requests that were refused in the queue
        # have no route.
        served = sum(
            value
            for name, value in run.counters.items()
            if name.startswith("cdb_requests_total{") and "/payloadiovs" in name and GOOD.search(name)
        )
        return cls(
            status, jobs, outcomes, good / (max(times) / 1000), percentile(times, 50), percentile(times, 99),
            max(times), 100 * max(0.0, good - served) / jobs if run.counters else None,
            float(requests.begin.max() - requests.begin.min()) * 1000,
        )  # fmt: skip

    @property
    def answered(self) -> int:
        """The number of jobs with any response."""
        return sum(self.outcomes.values()) - self.outcomes[outcome.NO_RESPONSE]


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the size of a storm and the scenario."""
    parser.add_argument(
        "--jobs",
        action=Number,
        kind=int,
        least=1,
        metavar="N",
        help=f"jobs of a storm (default: {JOBS:,}; {QUICK_JOBS} with --quick)",
    )
    parser.add_argument(
        "--scenario", default="moderate", choices=SCENARIOS, help="scenario that is cloned (default: moderate)"
    )


def run(stage: Stage) -> Findings:
    """Run storms on the three tags in alternating order."""
    jobs = int(stage.options.get("jobs") or (QUICK_JOBS if stage.quick else JOBS))
    scenario = stage.options.get("scenario", "moderate")
    _allow_files(jobs + SPARE_FILES)
    storms = []
    with stage.serving(scenarios=(scenario,), CDB_LOCKED_MAX_AGE_SECONDS=str(LOCKED_SECONDS)):
        tags = _make_tags(stage, scenario)
        for number in range(1, (QUICK_ROUNDS if stage.quick else ROUNDS) + 1):
            # A new moment in each round, which no earlier round or run has put into the cache.
            minor = int(time.time())
            for status in STATUSES[:: 1 if number % 2 else -1]:
                options = {"jobs": str(jobs), "scenario": scenario, "global-tag": tags[status]}
                options |= {"major": str(MAJOR), "minor": str(minor)}
                record = partial(burst.run, stage.url, options=options)
                settings = {"start-jobs": "all at once", **options}
                run = stage.watched(f"{status}, round {number}", record, settings, detailed=number == 1)
                storms.append(Storm.of(status, jobs, run))
                time.sleep(PAUSE_SECONDS)
    return _findings(stage, storms)


def _allow_files(number: int) -> None:
    """Raise the limit on open files of this process and its children.

    Raises `ServiceError` if that is not permitted.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= number:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, max(number, hard)))
    except (ValueError, OSError) as error:
        raise ServiceError(
            f"a storm of so many jobs needs {number:,} open files, but the limit is {hard:,}: "
            f"raise it (ulimit -Hn {number}) or reduce --jobs"
        ) from error


def _make_tags(stage: Stage, scenario: str) -> dict[str, str]:
    """Create a clone of the scenario for each status; clones of an earlier run are used as they are."""
    tags = {status: f"storm-{status}-{scenario}" for status in STATUSES}
    with Client(stage.own.port) as client:
        there = {tag["name"]: tag for tag in json.loads(client.call("GET", "globalTags").body)}
        for status, tag in tags.items():
            if tag not in there:
                stage.say(f"cloning {scenario} as {tag}")
                client.write("POST", f"cloneGlobalTag/{scenario}/{tag}")
            # An earlier run may have been interrupted between cloning and changing the status.
            if there.get(tag, UNLOCKED)["status"] != status:
                client.write("PUT", f"gt_change_status/{tag}/{status}")
    return tags


def _findings(stage: Stage, storms: list[Storm]) -> Findings:
    rates = {status: [storm.answers_per_s for storm in storms if storm.status == status] for status in STATUSES}
    jobs, unanswered = storms[0].jobs, sum(storm.jobs - storm.answered for storm in storms)
    other = sum(storm.answered - storm.outcomes[outcome.OK] - storm.outcomes[outcome.OVERLOADED] for storm in storms)
    least = min(100 * storm.outcomes[outcome.OK] / jobs for storm in storms if storm.status == "frozen")
    medians = ", ".join(f"{Spread.of(values).median:,.0f} on the {status} tag" for status, values in rates.items())
    return Findings(
        summary=f"Responses per second to {jobs:,} simultaneous jobs: {medians}; {unanswered:,} jobs of {len(storms)} storms had "
        "no response",
        targets=[
            Target("jobs without a response, all storms", unanswered, 0, at_most=True),
            Target("responses that are neither correct nor 504 (retry later)", other, 0, at_most=True),
            Target(
                "correct responses in the worst storm on the frozen tag", least, LEAST_SUCCESS, at_most=False, unit="%"
            ),
        ],
        tables=[_medians(storms), _each(storms)],
        plots=[
            plots.bars(
                f"Answers a second, {jobs:,} jobs at once", {k: Spread.of(v) for k, v in rates.items()}, x="answers/s"
            )
        ],
        runs=stage.runs,
        notes=[_note(storms)],
        figures=_figures(storms),
        raw=[vars(storm) | {"outcomes": json.dumps(storm.outcomes)} for storm in storms],
    )


MEASURED = {
    "answers_per_s": "answers/s",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "last_ms": "last ms",
    "by_nginx": "by nginx alone %",
    "spread_ms": "last began after ms",
}


def _figures(storms: list[Storm]) -> dict[str, list[float]]:
    found = {
        f"{status}: {what}": [getattr(storm, key) for storm in storms if storm.status == status]
        for status in STATUSES
        for key, what in MEASURED.items()
    }
    return {name: values for name, values in found.items() if None not in values}


def _medians(storms: list[Storm]) -> Table:
    figures = _figures(storms)
    rows = [
        (
            status,
            *(
                str(Spread.of(figures[key])) if (key := f"{status}: {what}") in figures else None
                for what in MEASURED.values()
            ),
        )
        for status in STATUSES
    ]
    return Table("Median (least–most) of the storms", ("tag", *MEASURED.values()), rows)


def _each(storms: list[Storm]) -> Table:
    shown = (outcome.OK, outcome.OVERLOADED, outcome.NO_RESPONSE)
    rows = [
        (storm.status, *(storm.outcomes[name] for name in shown), storm.jobs - sum(storm.outcomes[name] for name in shown),
         *(getattr(storm, key) for key in MEASURED))
        for storm in storms
    ]  # fmt: skip
    return Table("Each storm, in the order they came", ("tag", *shown, "other", *MEASURED.values()), rows)


def _note(storms: list[Storm]) -> str:
    latest = max(storm.spread_ms for storm in storms)
    return (
        "Times count from when all jobs were due. One process started them, and the last one began up to "
        f"{latest:,.0f} ms after the first. A farm of machines would be faster, and the time for which a job waited for the "
        "generator is part of its time. By nginx alone is the share of correct responses that the service did not count as "
        "lookups; it counts requests that revalidate a cached response."
    )
