"""What is the highest rate of job starts that the service sustains, and which resource runs out above it?

Jobs start at a rate whether earlier ones have ended or not (the open model: real jobs do not wait for each
other). The rate is raised in steps until it is no longer sustained. A bisection finds the limit more precisely,
and the rate below it is then held for a longer time.
"""

import argparse
from dataclasses import dataclass, field, replace
from typing import Any

from cdb_rest.management.quantities import AT_LEAST_ONE, IN_MILLISECONDS, IN_SECONDS, Number
from loadtests.campaigns import tag_options
from loadtests.campaigns.generator import CONSTANT, Generator
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.saturation_pages import Outcome, findings_of
from loadtests.campaigns.search import Found, Plan, search
from loadtests.campaigns.stage import Stage
from loadtests.campaigns.sustained import Step, judge
from loadtests.campaigns.watched import Watched
from loadtests.reporting.figures import number
from loadtests.reporting.findings import Findings, Run

TITLE = "Saturation"
SCENARIOS = "moderate worst-case"
# The share of a step before its window, in which users begin and connections are opened.
LEAD_SHARE = 0.25
WARM_UP_RATE = 10.0
# Repetitions start at this share of the rate found first, and rise in smaller steps.
NEAR, NEAR_FACTOR = 0.7, 1.2

# The argparse arguments of options whose value is jobs per second.
RATE: dict[str, Any] = {"action": Number, "above": 0, "metavar": "RATE"}


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options; with the defaults, each scenario takes some ten minutes."""
    add = parser.add_argument
    described = f"scenarios; none, with --global-tag: other data (default: {SCENARIOS}; tiny with --quick)"
    add("--scenario", nargs="+", metavar="NAME", help=described)
    tag_options.add_content(parser)
    add("--pattern", default="random", help="pattern of the moments (default: random)")
    add("--start-jobs", default=CONSTANT, choices=(CONSTANT, "at random"), help=f"start of jobs (default: {CONSTANT})")
    add("--start", **RATE, default=50.0, help="jobs per second in the first step (default: 50)")
    add("--factor", action=Number, above=1, default=1.4, help="factor from one step to the next (default: 1.4)")
    add("--step", **IN_SECONDS, default=15.0, help="length of a step (default: 15)")
    add("--hold", **IN_SECONDS, default=60.0, help="time for which the found rate is held (default: 60)")
    add("--most", **RATE, default=5_000.0, help="highest rate to try (default: 5000)")
    add("--bound", **IN_MILLISECONDS, default=1_000.0, help="bound for the time of 95 %% of the jobs (default: 1000)")
    add("--repetitions", **AT_LEAST_ONE, default=2, help="repetitions of the search (default: 2)")
    add(
        "--processes",
        **AT_LEAST_ONE,
        default=1,
        help="initial processes of the generator; more are added when they are full (default: 1)",
    )
    add(
        "--at-least",
        action=Number,
        least=0,
        default=1.0,
        metavar="RATE",
        help="sustained rate at which the campaign passes (default: 1)",
    )


@dataclass
class Options:
    """The options of the campaign, from the command line or `--quick`."""

    scenarios: tuple[str, ...]
    plan: Plan
    step_seconds: float
    repetitions: int
    bound_ms: float
    at_least: float
    locust_options: dict[str, str]
    processes: int = 1

    @classmethod
    def of(cls, stage: Stage) -> "Options":
        """Read the options of the stage."""
        get = stage.options.get
        start, factor, most, hold = (float(get(name, value)) for name, value in _DEFAULTS.items())
        locust_options = {name: get(name.replace("-", "_"), value) for name, value in _PASSED_ON.items()}
        locust_options |= tag_options.content(stage.options)
        options = cls(
            tuple((get("scenario") or ("tiny" if stage.quick else SCENARIOS)).split()),
            Plan(start, factor, most, precision=1.05, hold_seconds=hold), float(get("step", 15.0)),
            int(get("repetitions", 2)), float(get("bound", 1_000.0)), float(get("at_least", 1.0)), locust_options,
            int(get("processes", 1)),
        )  # fmt: skip
        if stage.quick:
            options.plan = Plan(10.0, 2.0, 20.0, precision=1.5, hold_seconds=4.0, least=5.0, holds=2)
            options.step_seconds, options.repetitions = 3.0, 1
        return options


_DEFAULTS = {"start": 50.0, "factor": 1.4, "most": 5_000.0, "hold": 60.0}
_PASSED_ON = {"pattern": "random", "start-jobs": CONSTANT}


def run(stage: Stage) -> Findings:
    """Search for the highest sustained rate in each scenario."""
    options = Options.of(stage)
    outcomes = []
    with stage.serving(scenarios=options.scenarios):
        for scenario in options.scenarios:
            outcomes.append(_Search(stage, options, scenario).whole())
    return findings_of(outcomes, options.plan, bound_ms=options.bound_ms, at_least=options.at_least)


@dataclass
class Tried:
    """One step: the requested rate, its evaluation, its run, and the signals in its window."""

    rate: float
    step: Step
    run: Run
    watched: Watched

    @property
    def sustained(self) -> bool:
        """Whether the rate was sustained."""
        return self.step.sustained


@dataclass
class _Search:
    stage: Stage
    options: Options
    scenario: str
    runs: list[Run] = field(default_factory=list)
    generator: Generator = field(init=False)

    def __post_init__(self) -> None:
        self.generator = Generator(self.options.processes)

    def whole(self) -> Outcome:
        """Warm up, and run the search in each repetition."""
        warm_up = self._load(WARM_UP_RATE, self.options.step_seconds)
        self.stage.load(f"{self.scenario}: warm-up", warm_up, detailed=False)
        found: list[Found[Tried]] = [search(self.at, self.options.plan)]
        first, plan = found[0].held, self.options.plan
        for _ in range(self.options.repetitions - 1 if first else 0):
            near = replace(plan, start=first * NEAR, factor=min(NEAR_FACTOR, plan.factor))
            found.append(search(self.at, near))
        return Outcome(self.scenario, found)

    def at(self, rate: float, purpose: str, seconds: float | None) -> Tried:
        """Run a step; repeat it with one more process if the generator was full."""
        seconds = seconds or self.options.step_seconds
        while True:
            tried = self._once(rate, purpose, seconds)
            if not self.generator.grows(tried.watched.generator()):
                return tried
            self.stage.say(f"the generator is full: {self.generator.processes} processes from now on")

    def _once(self, rate: float, purpose: str, seconds: float) -> Tried:
        label = f"{self.scenario} {len(self.runs) + 1}: {purpose}, {rate:.1f} jobs/s"
        load = self._load(rate, seconds)
        run = self.stage.load(label, load, detailed=False)
        self.runs.append(run)
        # Each user begins at a random time within the first interval, so the first users end up to an interval early.
        interval = load.count / rate
        begin, end = self.options.step_seconds * LEAD_SHARE, seconds - interval
        step = judge(run.recording, begin=begin, end=end, bound_ms=self.options.bound_ms)
        verdict = "sustained" if step.sustained else "; ".join(step.faults)
        self.stage.say(f"  answered {number(step.answered)}/s, p95 {number(step.p95)} ms: {verdict}")
        return Tried(rate, step, run, Watched.of(run, step.begin, step.end))

    def _load(self, rate: float, seconds: float) -> Load:
        options = {"scenario": self.scenario, **self.options.locust_options}
        return self.generator.load({"ReconstructionJob": 1}, rate, seconds, options)
