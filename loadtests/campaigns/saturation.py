"""What is the highest rate of job starts that the service sustains, and which resource runs out above it?

Jobs start at a rate whether earlier ones have ended or not (the open model: real jobs do not wait for each
other). The rate is raised in steps until it is no longer sustained. A bisection finds the limit more precisely,
and the rate below it is then held for a longer time.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes

from cdb_rest.management.quantities import AT_LEAST_ONE, IN_MILLISECONDS, IN_SECONDS, Number
from loadtests.campaigns import options, resources, sustained
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.resources import NOTHING, Verdict
from loadtests.campaigns.search import Found, Plan, search
from loadtests.campaigns.stage import Stage
from loadtests.campaigns.sustained import Step, judge
from loadtests.campaigns.watched import Watched
from loadtests.recording.outcome import WRONG
from loadtests.reporting import plots
from loadtests.reporting.figures import grouped, number
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings, Plot, Run, Table, Target

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
# Programs that use less are not plotted.
LEAST_CORES = 0.02
UNSEEN = ", by the metrics of the deployment; the usage of its processors is unknown and may be the cause"
# The columns of tables: the keys of rows, which are mostly the fields of `Step`, with their headings.
RATES = {"scenario": "scenario", "search": "search", "held": "held, jobs/s", "answered": "answered, jobs/s"}
TIMES = {"p50": "p50, ms", "p95": "p95, ms", "p99": "p99, ms"}
OVERVIEW = RATES | {"requests": "requests/s", **TIMES, "broke": "lowest that broke, jobs/s", "resource": "what ran out"}
STEPS = {"label": "step", "offered": "due, jobs/s", "answered": "answered, jobs/s", **TIMES, "failures": "failures"}
STEPS |= {"in_progress": "in progress", "growth": "its growth", "late": "late, ms (p99)"}
STEPS |= {"cores": "generator, cores of one process", "said": ""}
EVIDENCE = {"resource": "resource", "held": "at the rate that held", "broke": "at the rate that broke"}
EVIDENCE |= {"bound": "ran out from", "mark": "", "remark": "remark"}


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
    return _findings(outcomes, plan, bound_ms=given.bound, at_least=given.at_least)


@dataclass(frozen=True)
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


class Searches:
    """The searches in one scenario; a generator process is added when the existing ones are full."""

    def __init__(self, stage: Stage, scenario: str) -> None:
        self._stage, self._options, self._scenario = stage, stage.options, scenario
        self.processes, self._steps = stage.options.processes, 0

    def run(self, plan: Plan) -> "Outcome":
        """Warm up, and run the search in each repetition."""
        self._stage.load(f"{self._scenario}: warm-up", self.load(WARM_UP_RATE, self._options.step), detailed=False)
        found = [search(self.at, plan)]
        first = found[0].held
        for _ in range(self._options.repetitions - 1 if first else 0):
            near = replace(plan, start=first * NEAR, factor=min(NEAR_FACTOR, plan.factor))
            found.append(search(self.at, near))
        return Outcome(self._scenario, found)

    def at(self, rate: float, purpose: str, seconds: float | None) -> Tried:
        """Run a step; repeat it with one more process if the generator was full, up to the number of cores."""
        seconds = seconds or self._options.step
        while True:
            tried = self._once(rate, purpose, seconds)
            cores = tried.watched.generator()
            if cores is None or cores < FULL_GENERATOR or self.processes >= len(os.sched_getaffinity(0)):
                return tried
            self.processes += 1
            self._stage.say(f"the generator is full: {self.processes} processes from now on")

    def _once(self, rate: float, purpose: str, seconds: float) -> Tried:
        self._steps += 1
        load = self.load(rate, seconds)
        run = self._stage.load(f"{self._scenario} {self._steps}: {purpose}, {rate:.1f} jobs/s", load, detailed=False)
        # Each user begins at a random time within the first interval, so the first users end up to an interval early.
        begin, end = self._options.step * LEAD_SHARE, seconds - load.count / rate
        step = judge(run.recording, begin=begin, end=end, bound_ms=self._options.bound)
        said = "sustained" if step.sustained else "; ".join(step.faults)
        self._stage.say(f"  answered {number(step.answered)}/s, p95 {number(step.p95)} ms: {said}")
        return Tried(rate, step, run, Watched(run.signals, run.recording.samples, step.begin, step.end))

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


@dataclass
class Outcome:
    """The results of the searches in one scenario."""

    scenario: str
    found: list[Found]

    @property
    def tries(self) -> list[Any]:
        """All steps of all searches, by rate."""
        return sorted((tried for found in self.found for _, tried in found.tries), key=lambda tried: tried.rate)

    @property
    def held(self) -> list[Any]:
        """The step of each search at the rate that held, if there is one."""
        return [found.last(found.held) for found in self.found if found.held]

    @property
    def broken(self) -> Any:
        """The step at the lowest rate that was not sustained, of the first search that has one; None without any."""
        return next((found.last(found.broke) for found in self.found if found.broke), None)

    @property
    def decisive(self) -> Any:
        """The step of the verdict: the one that was not sustained or, if all were, the one at the highest rate."""
        return self.broken or self.tries[-1]

    @property
    def verdict(self) -> Verdict:
        """The resource that ran out in the decisive step; a limit may be reached even if all rates were sustained."""
        step = self.decisive.step
        return resources.decide(self.decisive.watched, only_late=step.was_late and len(step.faults) == 1)

    @property
    def resource(self) -> str:
        """The resource that ran out, with a remark if the usage of processors is unknown, as for a remote deployment.

        Most rules depend on it.
        """
        return self.verdict.resource + ("" if self.decisive.watched.mean("cpu.machine") is not None else UNSEEN)

    def sentence(self) -> str:
        """The outcome in a sentence."""
        if not self.held:
            return f"{self.scenario}: no rate held"
        step, verdict = self.held[0].step, self.verdict
        rate = f"{self.scenario}: {number(step.answered)} jobs/s ({number(step.requests)} requests/s) sustained"
        highest = f"at up to {number(self.decisive.rate)} jobs/s"
        if verdict.void:
            return f"{rate}; void because of {verdict.resource}"
        if self.broken is not None:
            return f"{rate}; what ran out is {self.resource}"
        if verdict.resource == NOTHING:
            return f"{rate}, and nothing ran out {highest}{self.resource.removeprefix(NOTHING)}"
        return f"{rate}; no rate broke {highest}, but what ran out there is {self.resource}"


def _findings(outcomes: Sequence[Outcome], plan: Plan, *, bound_ms: float, at_least: float) -> Findings:
    """The findings of the campaign; `at_least` is the rate at which it passes."""
    limits = {"loss": sustained.LOSS, "loss_jobs": sustained.LEAST_LOSS_JOBS, "margin": sustained.MARGIN}
    text = notes("saturation", bound=bound_ms, growth_jobs=sustained.LEAST_GROWTH_JOBS, **limits)
    findings = Findings(summary="; ".join(outcome.sentence() for outcome in outcomes), notes=text)
    overview: list[dict[str, Any]] = []
    for outcome in outcomes:
        _add(findings, outcome, at_least)
        void = "void: " + outcome.verdict.resource if outcome.verdict.void else outcome.resource
        for count, found in enumerate(outcome.found, 1):
            step = vars(found.last(found.held).step) if found.held else {}
            place = {"scenario": outcome.scenario, "search": count, "held": found.held, "broke": found.broke}
            overview.append(step | place | {"resource": void})
    findings.tables.insert(0, Table.of(f"Sustained rates, held for {plan.hold_seconds:g} s", overview, OVERVIEW))
    return findings


def _add(findings: Findings, outcome: Outcome, at_least: float) -> None:
    name, verdict, held, broken = outcome.scenario, outcome.verdict, outcome.held, outcome.broken
    rates = [tried.step.answered for tried in held]
    # At all rates: an overloaded service may refuse requests, but must not return wrong data.
    wrong = sum(tried.run.recording.requests.counts[WRONG] for tried in outcome.tries)
    findings.targets += [
        Target(f"{name}: rate that held", min(rates, default=0.0), at_least, at_most=False, unit="jobs/s"),
        Target(f"{name}: wrong responses at any rate", wrong, 0, at_most=True),
        Target(f"{name}: void verdicts", int(verdict.void), 0, at_most=True),
    ]
    findings.figures |= {
        f"{name}: sustained jobs/s": rates,
        f"{name}: requests/s at that rate": [tried.step.requests for tried in held],
        f"{name}: p95 of jobs at that rate, ms": [tried.step.p95 for tried in held],
    }
    steps = []
    for tried in outcome.tries:
        faults = "; ".join(tried.step.faults)
        detailed = any(tried is one for one in (*held[:1], broken))
        findings.runs.append(replace(tried.run, detailed=detailed))
        row = {"scenario": name, "label": tried.run.label, "sustained": tried.sustained}
        row |= vars(tried.step) | {"faults": faults}
        findings.raw.append(row)
        steps.append(row | {"cores": tried.watched.generator(), "said": faults or "sustained"})
    # The values of all rules at the rate that held and at the one that broke; the verdict is that of the decisive step.
    before = [one.measured for one in resources.evaluate(held[0].watched)] if held else [None] * len(verdict.evidence)
    evidence = []
    for one, at_held in zip(verdict.evidence, before, strict=True):
        row = {"resource": one.resource.split(",")[0], "held": at_held, "broke": one.measured if broken else None}
        row |= {"bound": f"≥ {one.bound:g} {one.unit}", "mark": "ran out" if one.ran_out else "", "remark": one.remark}
        evidence.append(row)
    findings.tables += [Table.of(f"{name}: evidence", evidence, EVIDENCE), Table.of(f"{name}: steps", steps, STEPS)]
    findings.plots += _plots(outcome)
    watched = outcome.decisive.watched
    if cores := watched.cpu("generator"):
        findings.notes.append(
            f"{name}: the generator ran on the same machine and used {cores:.2f} of {watched.cores} cores, which the service "
            "would have with the generator on another machine."
        )


def _plots(outcome: Outcome) -> list[Plot]:
    """Curves against the rate that was due, with lines at the rate that held and at the one that broke."""
    tries, name, resource = outcome.tries, outcome.scenario, outcome.verdict.resource.split(",")[0]
    names = {one for tried in tries for one, cores in tried.watched.programs().items() if cores >= LEAST_CORES}
    rows = []
    for tried in tries:
        used = {f"cpu {program}": tried.watched.cpu(program) for program in names}
        rows.append(vars(tried.step) | used | {"rate": tried.rate, "all": tried.watched.mean("cpu.machine")})

    def mark(axes: Axes) -> None:
        if outcome.held:
            axes.axvline(outcome.held[0].rate, color="black", linestyle="--", linewidth=1, label="held")
        if outcome.broken:
            look = {"color": plots.COLOURS[9], "linestyle": ":", "linewidth": 1.4}
            axes.axvline(outcome.broken.rate, label=f"broke: {resource}", **look)

    def plot(title: str, columns: dict[str, str], y: str, *, log_y: bool = False) -> Plot:
        return curves_of(f"{name}: {title}", rows, columns, y, mark, log_y=log_y)

    cpu = {"all": "all"} | {program: f"cpu {program}" for program in sorted(names)}
    return [
        plot("answered against due", {"answered rightly": "answered", "as due": "rate"}, "jobs/s"),
        plot("times of jobs, from when they were due", {share: share for share in TIMES}, "ms", log_y=True),
        plot("processors", cpu, "cores"),
        plot("jobs in progress", {"mean": "in_progress"}, "jobs"),
    ]


def curves_of(
    title: str,
    rows: Sequence[dict],
    columns: dict[str, str],
    y: str,
    mark: Callable[[Axes], None],
    *,
    log_y: bool = False,
) -> Plot:
    """A plot of columns against the rate; several steps at the same rate are one point with whiskers."""
    steps = {
        label: [
            (rate, [row[column] for row in group if row.get(column) is not None])
            for rate, group in grouped(rows, "rate").items()
        ]
        for label, column in columns.items()
    }
    return plots.scaling(title, steps, x="job starts due, 1/s", y=y, log_x=False, log_y=log_y, mark=mark)
