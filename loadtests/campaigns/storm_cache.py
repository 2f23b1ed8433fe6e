"""What does the cache save when a whole batch farm starts at once, for each status of the tag that its jobs request?

All jobs of a storm are due at once, each over its own connection, and send the same lookup, which was never
sent before. For a frozen tag nginx may serve the response from its cache, for a locked one during
CDB_LOCKED_MAX_AGE_SECONDS, which is a minute here (by default 0). For an unlocked tag nginx revalidates its
cached response with the service for each request.
"""

import argparse
import json
import re
import time
from functools import partial
from typing import Any

from cdb_rest.management.quantities import AT_LEAST_ONE
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests import burst
from loadtests.campaigns import options
from loadtests.campaigns.stage import Stage
from loadtests.recording.outcome import NO_RESPONSE, OK, OVERLOADED
from loadtests.reporting import plots
from loadtests.reporting.figures import spreads
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings, Run, Table, Target
from loadtests.reporting.summaries import percentiles_of
from loadtests.storm import allow_files

STATUSES, UNLOCKED = ("frozen", "locked", "unlocked"), {"status": "unlocked"}
LOCKED_SECONDS = 60
JOBS, QUICK_JOBS = 10_000, 500
ROUNDS, QUICK_ROUNDS = 3, 1
# The kernel's queues must be empty before the next storm.
PAUSE_SECONDS = 2.0
MAJOR = 2**30
LEAST_SUCCESS = 99.0
CONFIRMED = re.compile(r'status="(200|304)"')
# The figures of a storm, with their headings.
MEASURED = {"answers_per_s": "answers/s", "p50_ms": "p50 ms", "p99_ms": "p99 ms", "last_ms": "last ms"}
MEASURED |= {"by_nginx": "by nginx alone %", "spread_ms": "last began after ms"}
SHOWN = (OK, OVERLOADED, NO_RESPONSE)


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the size of a storm and the scenario."""
    options.add(parser, "--jobs", "jobs of a storm", JOBS, QUICK_JOBS, metavar="N", **AT_LEAST_ONE)
    options.add(parser, "--scenario", "scenario that is cloned", "moderate", choices=SCENARIOS)


def run(stage: Stage) -> Findings:
    """Run storms on the three tags in alternating order."""
    jobs, scenario, storms = stage.options.jobs, stage.options.scenario, []
    allow_files(jobs)
    with stage.serving(scenarios=(scenario,), CDB_LOCKED_MAX_AGE_SECONDS=str(LOCKED_SECONDS)):
        tags = _make_tags(stage, scenario)
        for number in range(1, (QUICK_ROUNDS if stage.quick else ROUNDS) + 1):
            # A new moment in each round, which no earlier round or run has put into the cache.
            moment = {"major": MAJOR, "minor": int(time.time())}
            for status in STATUSES[:: 1 if number % 2 else -1]:
                given = {"jobs": jobs, "scenario": scenario, "global-tag": tags[status], **moment}
                settings = {"start-jobs": "all at once"} | {name: str(value) for name, value in given.items()}
                record = partial(burst.run, stage.url, options=given)
                done = stage.watched(f"{status}, round {number}", record, settings, detailed=number == 1)
                storms.append(_row(status, jobs, done))
                time.sleep(PAUSE_SECONDS)
    return _findings(stage, storms)


def _make_tags(stage: Stage, scenario: str) -> dict[str, str]:
    """Create a clone of the scenario for each status; clones of an earlier run are used as they are."""
    tags, client = {status: f"storm-{status}-{scenario}" for status in STATUSES}, stage.client()
    there = {tag["name"]: tag for tag in client.call("GET", "globalTags").json}
    for status, tag in tags.items():
        if tag not in there:
            stage.say(f"cloning {scenario} as {tag}")
            client.call("POST", f"cloneGlobalTag/{scenario}/{tag}")
        # An earlier run may have been interrupted between cloning and changing the status.
        if there.get(tag, UNLOCKED)["status"] != status:
            client.call("PUT", f"gt_change_status/{tag}/{status}")
    return tags


def _row(status: str, jobs: int, run: Run) -> dict[str, Any]:
    """The figures of a storm, from its recording and counters.

    `answers_per_s` are correct responses per second until the last one; `p50_ms`, `p99_ms` and `last_ms` are
    measured from the begin of the storm. `by_nginx` is the percentage of jobs that nginx served from its cache
    (None without counters), `spread_ms` the time from the begin of the first job to that of the last one.
    """
    requests = run.recording.requests
    outcomes, times = requests.counts, percentiles_of(requests.milliseconds)
    # With 304 the service confirms the response in nginx's cache. Requests that were refused in the queue
    # have no route.
    served = sum(
        value
        for name, value in run.counters.items()
        if name.startswith("cdb_requests_total{") and "/payloadiovs" in name and CONFIRMED.search(name)
    )
    good = outcomes[OK]
    return {
        "status": status,
        "jobs": jobs,
        "outcomes": outcomes,
        "answers_per_s": good / (times["max_ms"] / 1000),
        "p50_ms": times["p50_ms"],
        "p99_ms": times["p99_ms"],
        "last_ms": times["max_ms"],
        "by_nginx": 100 * max(0.0, good - served) / jobs if run.counters else None,
        "spread_ms": float(requests.begin.max() - requests.begin.min()) * 1000,
    }


def _findings(stage: Stage, storms: list[dict[str, Any]]) -> Findings:
    jobs, rates = storms[0]["jobs"], spreads(storms, "status", "answers_per_s")
    rows = [row | {name: row["outcomes"][name] for name in SHOWN} for row in storms]
    for row in rows:
        row["other"] = jobs - sum(row[name] for name in SHOWN)
    unanswered, other = (sum(row[name] for row in rows) for name in (NO_RESPONSE, "other"))
    least = min(100 * row[OK] / jobs for row in rows if row["status"] == "frozen")
    said = ", ".join(f"{rate.median:,.0f} on the {status} tag" for status, rate in rates.items())
    medians = {key: spreads(storms, "status", key) for key in MEASURED}
    cells = [(name, *(str(medians[key].get(name)) if medians[key] else None for key in MEASURED)) for name in STATUSES]
    return Findings(
        summary=f"Responses per second to {jobs:,} simultaneous jobs: {said}; {unanswered:,} jobs of {len(storms)} storms had no "
        "response",
        targets=[
            Target("jobs without a response, all storms", unanswered, 0, at_most=True),
            Target("responses that are neither correct nor 504 (retry later)", other, 0, at_most=True),
            Target("correct responses in the worst storm on the frozen tag", least, LEAST_SUCCESS, False, unit="%"),
        ],
        tables=[
            Table("Median (least–most) of the storms", ("tag", *MEASURED.values()), cells),
            Table.of(
                "Each storm, in the order they came",
                rows,
                {"status": "tag"} | {name: name for name in (*SHOWN, "other")} | MEASURED,
            ),
        ],
        plots=[plots.bars(f"Answers a second, {jobs:,} jobs at once", rates, x="answers/s")],
        runs=stage.runs,
        notes=notes("storm-cache", spread=max(row["spread_ms"] for row in storms)),
        figures={
            f"{status}: {heading}": [row[key] for row in storms if row["status"] == status]
            for status in STATUSES
            for key, heading in MEASURED.items()
            if medians[key]
        },
        raw=[row | {"outcomes": json.dumps(row["outcomes"])} for row in storms],
    )
