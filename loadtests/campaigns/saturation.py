"""What is the highest rate of job starts that the service sustains, and which resource is exhausted above it?

Jobs start at a rate whether earlier ones have ended or not (the open model: real jobs do not wait for each
other). The rate is raised in steps until it is no longer sustained. A bisection finds the limit more precisely,
and the rate below it is then held for a longer time.
"""

import argparse
import os
from dataclasses import replace
from typing import Any

from cdb_rest.management.quantities import AT_LEAST_ONE, IN_MILLISECONDS, IN_SECONDS, Number
from loadtests.campaigns import options
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.saturation_findings import Outcome, findings_of
from loadtests.campaigns.search import Plan, search
from loadtests.campaigns.stage import Stage
from loadtests.campaigns.sustained import Step, judge
from loadtests.reporting.figures import number
from loadtests.reporting.result import Findings

# The share of a step before its window, in which users begin and connections are opened.
LEAD_SHARE = 0.25
WARM_UP_RATE = 10.0
# Repetitions start at this share of the rate found first, and rise in smaller steps.
NEAR, NEAR_FACTOR = 0.7, 1.2
# A Python process that uses more of a core handles responses late.
FULL_GENERATOR = 0.8
MOST_USERS = 100
CONSTANT = "at a constant rate"
# The part of locust's run time before the first job.
START_SECONDS = 2.0
# The argparse arguments of options whose value is jobs per second.
RATE: dict[str, Any] = {"action": Number, "above": 0, "metavar": "RATE"}


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options; with the defaults, each scenario takes some ten minutes."""
    text, names = "scenarios; none, with --global-tag: other data", ["moderate", "worst-case"]
    options.add(parser, "--scenario", text, names, ["tiny"], nargs="+", metavar="NAME")
    options.add_content(parser)
    options.add(parser, "--pattern", "pattern of the moments", "random")
    options.add(parser, "--start-jobs", "start of jobs", CONSTANT, choices=(CONSTANT, "at random"))
    options.add(parser, "--start", "jobs per second in the first step", 50.0, 10.0, **RATE)
    options.add(parser, "--factor", "factor from one step to the next", 1.4, 2.0, action=Number, above=1)
    options.add(parser, "--step", "length of a step", 15.0, 3.0, **IN_SECONDS)
    options.add(parser, "--hold", "time for which the found rate is held", 60.0, 4.0, **IN_SECONDS)
    options.add(parser, "--most", "highest rate to try", 5_000.0, 20.0, **RATE)
    options.add(parser, "--bound", "bound for the time of 95 %% of the jobs", 1_000.0, **IN_MILLISECONDS)
    options.add(parser, "--repetitions", "repetitions of the search", 2, 1, **AT_LEAST_ONE)
    text = "initial processes of the generator; more are added when they are full"
    options.add(parser, "--processes", text, 1, **AT_LEAST_ONE)
    options.add(
        parser, "--at-least", "sustained rate at which the campaign passes", 1.0, **RATE | {"above": None, "least": 0}
    )


def run(stage: Stage) -> Findings:
    """Search for the highest sustained rate in each scenario."""
    given = stage.options
    plan = Plan(given.start, given.factor, given.most, precision=1.05, hold_seconds=given.hold)
    if stage.quick:
        plan = replace(plan, precision=1.5, least=5.0, holds=2)
    with stage.serving(scenarios=tuple(given.scenario)):
        outcomes = [Searches(stage, scenario).run(plan) for scenario in given.scenario]
    return findings_of(outcomes, plan, bound_ms=given.bound, at_least=given.at_least)


class Searches:
    """The searches in one scenario; a generator process is added when the existing ones are full."""

    def __init__(self, stage: Stage, scenario: str) -> None:
        self._stage, self._options, self._scenario = stage, stage.options, scenario
        self.processes, self._steps = stage.options.processes, 0

    def run(self, plan: Plan) -> Outcome:
        """Warm up, and run the search in each repetition."""
        self._stage.load(f"{self._scenario}: warm-up", self.load(WARM_UP_RATE, self._options.step), detailed=False)
        found = [search(self.at, plan)]
        first = found[0].held
        for _ in range(self._options.repetitions - 1 if first else 0):
            near = replace(plan, start=first.rate * NEAR, factor=min(NEAR_FACTOR, plan.factor))
            found.append(search(self.at, near))
        return Outcome(self._scenario, found)

    def at(self, rate: float, purpose: str, seconds: float | None) -> Step:
        """Run a step; repeat it with one more process if the generator was full, up to the number of cores."""
        seconds = seconds or self._options.step
        while True:
            step = self._once(rate, purpose, seconds)
            cores = step.watched.generator()
            if cores is None or cores < FULL_GENERATOR or self.processes >= len(os.sched_getaffinity(0)):
                return step
            self.processes += 1
            self._stage.say(f"the generator is full: {self.processes} processes from now on")

    def _once(self, rate: float, purpose: str, seconds: float) -> Step:
        self._steps += 1
        load = self.load(rate, seconds)
        run = self._stage.load(f"{self._scenario} {self._steps}: {purpose}, {rate:.1f} jobs/s", load, detailed=False)
        # Each user begins at a random time within the first interval, so the first users end up to an interval early.
        begin, end = self._options.step * LEAD_SHARE, seconds - load.count / rate
        step = judge(run, rate, begin=begin, end=end, bound_ms=self._options.bound)
        self._stage.say(f"  answered {number(step.answered)}/s, p95 {number(step.p95)} ms: {step.row['result']}")
        return step

    def load(self, rate: float, seconds: float) -> Load:
        """A load of `rate` jobs per second for `seconds`, shared equally by all users.

        At a constant rate it has exactly the jobs that are due in this time; at random the run time of locust
        limits them.
        """
        given = self._options
        count = max(self.processes, min(MOST_USERS, round(rate)))
        settings = {"start-jobs": given.start_jobs, "scenario": self._scenario, "pattern": given.pattern}
        settings |= options.content(given) | {"jobs-per-second": f"{rate / count:.6g}", "start-together": True}
        time = seconds + START_SECONDS
        if given.start_jobs == CONSTANT:
            settings["jobs-per-user"], time = max(1, round(rate / count * seconds)), None
        return Load({"ReconstructionJob": 1}, count, time, options=settings, processes=self.processes)
