"""What becomes of 100,000 jobs that are launched together?

All of them are due at the same moment. The generator has a bound of connections at a time (--together): so many jobs begin at
once, and each of the others when one before it has ended, as a farm's jobs do where slots become free. When a job ended is
counted from the common moment, how long a request took from its own beginning.
"""

import argparse
import math
import time
from dataclasses import dataclass

from cdb_rest.management.quantities import AT_LEAST_ONE, IN_SECONDS
from loadtests.campaigns import asked
from loadtests.campaigns.access_log import FLUSH_SECONDS, AccessLog, size_of
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.peak_pages import Burst, findings_of
from loadtests.campaigns.stage import Stage
from loadtests.reporting.findings import Findings

TITLE = "Peak"
JOBS, QUICK_JOBS = 100_000, 1_000
TOGETHER, QUICK_TOGETHER = 5_000, 200
WARM_UP_JOBS = 200
# Connections are opened no faster than this, as far as locust decides: all users are there before the first job.
SPAWN_RATE = 1_000


def add_options(parser: argparse._ArgumentGroup) -> None:
    """The defaults take some minutes for each repetition."""
    add = parser.add_argument
    add("--scenario", help="what is in the tag; none: other data (default: moderate; tiny with --quick)")
    asked.add_content(parser)
    add("--pattern", default="random", help="the moments that jobs ask about (default: random)")
    add("--jobs", **AT_LEAST_ONE, help=f"in all (default: {JOBS:,}; {QUICK_JOBS:,} with --quick)")
    add(
        "--together",
        **AT_LEAST_ONE,
        help=f"connections at a time (default: {TOGETHER:,}; {QUICK_TOGETHER} with --quick)",
    )
    add("--repetitions", **AT_LEAST_ONE, help="(default: 2; 1 with --quick)")
    add("--processes", **AT_LEAST_ONE, default=1, help="of the generator (default: 1)")
    add("--within", **IN_SECONDS, default=900.0, help="all jobs have to end in time (default: 900)")


@dataclass(frozen=True)
class Ask:
    """What the command line says, or `--quick`: jobs are as many as all connections together come to."""

    scenario: str
    pattern: str
    together: int
    jobs_each: int
    repetitions: int
    processes: int
    within: float
    content: dict[str, str]

    @classmethod
    def of(cls, stage: Stage) -> "Ask":
        """From the options of the stage."""
        told, quick = stage.options.get, stage.quick
        jobs = int(told("jobs") or (QUICK_JOBS if quick else JOBS))
        together = min(jobs, int(told("together") or (QUICK_TOGETHER if quick else TOGETHER)))
        return cls(
            told("scenario") or ("tiny" if quick else "moderate"), told("pattern", "random"), together,
            math.ceil(jobs / together), int(told("repetitions") or (1 if quick else 2)), int(told("processes", 1)),
            float(told("within", 900.0)), asked.content(stage.options),
        )  # fmt: skip

    @property
    def jobs(self) -> int:
        """In all."""
        return self.together * self.jobs_each

    def load(self, together: int, jobs_each: int) -> Load:
        """What locust is told."""
        options = {
            "scenario": self.scenario, "pattern": self.pattern, "jobs-per-user": jobs_each, "start-together": True,
            "patience": 120, **self.content,
        }  # fmt: skip
        processes = min(self.processes, together)
        return Load({"ReconstructionJob": 1}, together, spawn_rate=SPAWN_RATE, options=options, processes=processes)


def run(stage: Stage) -> Findings:
    """The burst, as often as asked."""
    ask = Ask.of(stage)
    with stage.serving(scenarios=(ask.scenario,)):
        stage.load("warm-up", ask.load(min(20, ask.together), WARM_UP_JOBS // 20), detailed=False)
        bursts = [_burst(stage, ask, number) for number in range(1, ask.repetitions + 1)]
    return findings_of(bursts, scenario=ask.scenario, jobs=ask.jobs, together=ask.together, within=ask.within)


def _burst(stage: Stage, ask: Ask, number: int) -> Burst:
    path = stage.data / "serve" / "access.log"
    if not stage.host:
        # nginx still has lines about what was before.
        time.sleep(FLUSH_SECONDS)
    offset = size_of(path)
    label = f"{ask.jobs:,} jobs together, {number} of {ask.repetitions}"
    run = stage.load(label, ask.load(ask.together, ask.jobs_each))
    answered = int((run.recording.requests.statuses > 0).sum())
    log = None if stage.host else AccessLog.grown(path, offset, answered)
    burst = Burst(run, log)
    stage.say(f"  all ended after {burst.until(100):.1f} s, {burst.failures:,} requests failed")
    return burst
