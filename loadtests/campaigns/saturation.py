"""Which is the highest rate of job starts that the service sustains, and which resource runs out above it?

Jobs start at a rate whether earlier ones have been answered or not (the open model: real jobs do not wait for each other). The
rate is raised in steps until it breaks, the place is narrowed down, and what was found is held for longer.
"""

import argparse
from dataclasses import dataclass, field, replace
from typing import Any

from cdb_rest.management.quantities import AT_LEAST_ONE, IN_MILLISECONDS, IN_SECONDS, Number
from loadtests.campaigns import asked
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
# Of a step, left out: users begin, connections and caches are made.
LEAD_SHARE = 0.25
WARM_UP_RATE = 10.0
# Repetitions start below what was found, and go up in smaller steps.
NEAR, NEAR_FACTOR = 0.7, 1.2

# The arguments of options that take jobs a second.
RATE: dict[str, Any] = {"action": Number, "above": 0, "metavar": "RATE"}


def add_options(parser: argparse._ArgumentGroup) -> None:
    """The defaults take some ten minutes for each scenario."""
    add = parser.add_argument
    told = f"scenarios; none, with --global-tag: other data (default: {SCENARIOS}; tiny with --quick)"
    add("--scenario", nargs="+", metavar="NAME", help=told)
    asked.add_content(parser)
    add("--pattern", default="random", help="the moments that jobs ask about (default: random)")
    add("--start-jobs", default=CONSTANT, choices=(CONSTANT, "at random"), help="of each user")
    add("--start", **RATE, default=50.0, help="jobs a second of the first step (default: 50)")
    add("--factor", action=Number, above=1, default=1.4, help="of each step (default: 1.4)")
    add("--step", **IN_SECONDS, default=15.0, help="length of a step (default: 15)")
    add("--hold", **IN_SECONDS, default=60.0, help="how long the found rate is held (default: 60)")
    add("--most", **RATE, default=5_000.0, help="the highest rate to try (default: 5000)")
    add("--bound", **IN_MILLISECONDS, default=1_000.0, help="what 95 %% of the jobs must keep (default: 1000)")
    add("--repetitions", **AT_LEAST_ONE, default=2, help="of the search (default: 2)")
    add(
        "--processes",
        **AT_LEAST_ONE,
        default=1,
        help="of the generator to begin with; more are added when they are full",
    )
    add(
        "--at-least",
        action=Number,
        least=0,
        default=1.0,
        metavar="RATE",
        help="the sustained rate that passes (default: 1)",
    )


@dataclass
class Ask:
    """What the command line says, or `--quick`."""

    scenarios: tuple[str, ...]
    plan: Plan
    step_seconds: float
    repetitions: int
    bound_ms: float
    at_least: float
    options: dict[str, str]
    processes: int = 1

    @classmethod
    def of(cls, stage: Stage) -> "Ask":
        """From the options of the stage."""
        told = stage.options.get
        start, factor, most, hold = (float(told(name, value)) for name, value in _DEFAULTS.items())
        options = {name: told(name.replace("-", "_"), value) for name, value in _PASSED_ON.items()}
        options |= asked.content(stage.options)
        ask = cls(
            tuple((told("scenario") or ("tiny" if stage.quick else SCENARIOS)).split()),
            Plan(start, factor, most, precision=1.05, hold_seconds=hold), float(told("step", 15.0)),
            int(told("repetitions", 2)), float(told("bound", 1_000.0)), float(told("at_least", 1.0)), options,
            int(told("processes", 1)),
        )  # fmt: skip
        if stage.quick:
            ask.plan = Plan(10.0, 2.0, 20.0, precision=1.5, hold_seconds=4.0, least=5.0, holds=2)
            ask.step_seconds, ask.repetitions = 3.0, 1
        return ask


_DEFAULTS = {"start": 50.0, "factor": 1.4, "most": 5_000.0, "hold": 60.0}
_PASSED_ON = {"pattern": "random", "start-jobs": CONSTANT}


def run(stage: Stage) -> Findings:
    """Search for each scenario."""
    ask = Ask.of(stage)
    outcomes = []
    with stage.serving(scenarios=ask.scenarios):
        for scenario in ask.scenarios:
            outcomes.append(_Search(stage, ask, scenario).whole())
    return findings_of(outcomes, ask.plan, bound_ms=ask.bound_ms, at_least=ask.at_least)


@dataclass
class Tried:
    """One step: the rate that was asked for, what it came to, its run, and what was watched in its window."""

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
    ask: Ask
    scenario: str
    runs: list[Run] = field(default_factory=list)
    generator: Generator = field(init=False)

    def __post_init__(self) -> None:
        self.generator = Generator(self.ask.processes)

    def whole(self) -> Outcome:
        """Warm up, and search as often as asked."""
        warm_up = self._load(WARM_UP_RATE, self.ask.step_seconds)
        self.stage.load(f"{self.scenario}: warm-up", warm_up, detailed=False)
        found: list[Found[Tried]] = [search(self.at, self.ask.plan)]
        first, plan = found[0].held, self.ask.plan
        for _ in range(self.ask.repetitions - 1 if first else 0):
            near = replace(plan, start=first * NEAR, factor=min(NEAR_FACTOR, plan.factor))
            found.append(search(self.at, near))
        return Outcome(self.scenario, found)

    def at(self, rate: float, purpose: str, seconds: float | None) -> Tried:
        """A step; with more processes once more if the generator was full."""
        seconds = seconds or self.ask.step_seconds
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
        # Users begin together, each somewhere in the first of its intervals, and the first of them are the first to have done.
        interval = load.count / rate
        begin, end = self.ask.step_seconds * LEAD_SHARE, seconds - interval
        step = judge(run.recording, begin=begin, end=end, bound_ms=self.ask.bound_ms)
        told = "sustained" if step.sustained else "; ".join(step.faults)
        self.stage.say(f"  answered {number(step.answered)}/s, p95 {number(step.p95)} ms: {told}")
        return Tried(rate, step, run, Watched.of(run, step.begin, step.end))

    def _load(self, rate: float, seconds: float) -> Load:
        options = {"scenario": self.scenario, **self.ask.options}
        return self.generator.load({"ReconstructionJob": 1}, rate, seconds, options)
