"""What is the outcome of 100,000 jobs that are launched together?

All jobs are due at the same moment. The generator limits the number of concurrent connections (--together): so
many jobs begin at once, and each of the others when an earlier one has ended, as in a batch farm where slots
become free. The end of a job is counted from the common moment, the duration of a request from its own
beginning.
"""

import argparse
import math
import time
from dataclasses import dataclass

from cdb_rest.management.quantities import AT_LEAST_ONE, IN_SECONDS
from loadtests.campaigns import tag_options
from loadtests.campaigns.access_log import FLUSH_SECONDS, AccessLog, size_of
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.peak_pages import Burst, findings_of
from loadtests.campaigns.stage import Stage
from loadtests.reporting.findings import Findings

TITLE = "Peak"
JOBS, QUICK_JOBS = 100_000, 1_000
TOGETHER, QUICK_TOGETHER = 5_000, 200
WARM_UP_JOBS = 200
# locust starts users at this rate; all users exist before the first job.
SPAWN_RATE = 1_000


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options; with the defaults, each repetition takes some minutes."""
    add = parser.add_argument
    add("--scenario", help="scenario in the tag; none: other data (default: moderate; tiny with --quick)")
    tag_options.add_content(parser)
    add("--pattern", default="random", help="pattern of the moments (default: random)")
    add("--jobs", **AT_LEAST_ONE, help=f"number of jobs (default: {JOBS:,}; {QUICK_JOBS:,} with --quick)")
    add(
        "--together",
        **AT_LEAST_ONE,
        help=f"concurrent connections (default: {TOGETHER:,}; {QUICK_TOGETHER} with --quick)",
    )
    add("--repetitions", **AT_LEAST_ONE, help="number of repetitions (default: 2; 1 with --quick)")
    add("--processes", **AT_LEAST_ONE, default=1, help="processes of the generator (default: 1)")
    add("--within", **IN_SECONDS, default=900.0, help="time in which all jobs must end (default: 900)")


@dataclass(frozen=True)
class Options:
    """The options of the campaign; the number of jobs is rounded up to the same number for each connection."""

    scenario: str
    pattern: str
    together: int
    jobs_each: int
    repetitions: int
    processes: int
    within: float
    content: dict[str, str]

    @classmethod
    def of(cls, stage: Stage) -> "Options":
        """Read the options of the stage."""
        get, quick = stage.options.get, stage.quick
        jobs = int(get("jobs") or (QUICK_JOBS if quick else JOBS))
        together = min(jobs, int(get("together") or (QUICK_TOGETHER if quick else TOGETHER)))
        return cls(
            get("scenario") or ("tiny" if quick else "moderate"), get("pattern", "random"), together,
            math.ceil(jobs / together), int(get("repetitions") or (1 if quick else 2)), int(get("processes", 1)),
            float(get("within", 900.0)), tag_options.content(stage.options),
        )  # fmt: skip

    @property
    def jobs(self) -> int:
        """The number of all jobs."""
        return self.together * self.jobs_each

    def load(self, together: int, jobs_each: int) -> Load:
        """The load of `together` concurrent users with `jobs_each` jobs."""
        options = {
            "scenario": self.scenario, "pattern": self.pattern, "jobs-per-user": jobs_each, "start-together": True,
            "patience": 120, **self.content,
        }  # fmt: skip
        processes = min(self.processes, together)
        return Load({"ReconstructionJob": 1}, together, spawn_rate=SPAWN_RATE, options=options, processes=processes)


def run(stage: Stage) -> Findings:
    """Warm up, and launch the jobs in each repetition."""
    options = Options.of(stage)
    with stage.serving(scenarios=(options.scenario,)):
        stage.load("warm-up", options.load(min(20, options.together), WARM_UP_JOBS // 20), detailed=False)
        bursts = [_burst(stage, options, number) for number in range(1, options.repetitions + 1)]
    return findings_of(
        bursts, scenario=options.scenario, jobs=options.jobs, together=options.together, within=options.within
    )


def _burst(stage: Stage, options: Options, number: int) -> Burst:
    path = stage.data / "serve" / "access.log"
    if not stage.host:
        # nginx may still have lines of earlier requests in its buffer.
        time.sleep(FLUSH_SECONDS)
    offset = size_of(path)
    label = f"{options.jobs:,} jobs together, {number} of {options.repetitions}"
    run = stage.load(label, options.load(options.together, options.jobs_each))
    answered = int((run.recording.requests.statuses > 0).sum())
    log = None if stage.host else AccessLog.grown(path, offset, answered)
    burst = Burst(run, log)
    stage.say(f"  all ended after {burst.until(100):.1f} s, {burst.failures:,} requests failed")
    return burst
