"""The findings of the campaign saturation: verdicts, tables and plots of its searches."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from loadtests.campaigns import sustained
from loadtests.campaigns.resources import NOTHING, decide, evaluate
from loadtests.campaigns.search import Found, Plan
from loadtests.campaigns.sweep import Sweep
from loadtests.recording.outcome import WRONG
from loadtests.reporting import plots
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings, Plot, Table, Target

# The columns of tables, by the names of `Step.row`.
TIMES = {"p50": "p50, ms", "p95": "p95, ms", "p99": "p99, ms"}
OVERVIEW = {"scenario": "scenario", "search": "search", "rate": "held, jobs/s", "answered": "answered, jobs/s"}
OVERVIEW |= {"requests": "requests/s", **TIMES, "failed": "lowest rate that failed, jobs/s"}
OVERVIEW |= {"resource": "exhausted resource"}
STEPS = {"label": "step", "due": "due, jobs/s", "answered": "answered, jobs/s", **TIMES, "failures": "failures"}
STEPS |= {"in_progress": "in progress", "late": "late, ms (p99)", "cores": "generator, cores of one process"}
STEPS |= {"result": ""}
EVIDENCE = ("resource", "at the rate that held", "at the rate that failed", "exhausted from", "", "remark")


class Outcome:
    """The results of the searches in one scenario.

    `tries` are all steps of all searches, by rate; `held` the step of each search at the rate that held, if there is one;
    `failed` the step at the lowest rate that was not sustained, of the first search that has one. The verdict is about
    the `decisive` step: the one that was not sustained or, if all were, the one at the highest rate, because a limit may be
    reached even then. `is_local` says whether the service ran on this machine, so that the usage of its processors is known.
    """

    def __init__(self, scenario: str, found: list[Found]) -> None:
        self.scenario, self.found = scenario, found
        self.tries = sorted((tried for one in found for tried in one.tries), key=lambda tried: tried.rate)
        self.held = [one.held for one in found if one.held]
        self.failed = next((one.failed for one in found if one.failed), None)
        step = self.decisive = self.failed or self.tries[-1]
        self.verdict = decide(step.watched, only_late=step.was_late and len(step.faults) == 1)
        self.is_local = step.watched.mean("cpu.machine") is not None

    def sentence(self) -> str:
        """The outcome in a sentence."""
        [sentence] = notes("saturation-outcome", outcome=self, nothing=NOTHING)
        return sentence


def findings_of(outcomes: Sequence[Outcome], plan: Plan, *, bound_ms: float, at_least: float) -> Findings:
    """The findings of the campaign; `at_least` is the rate at which it passes."""
    limits = {"loss": sustained.LOSS, "loss_jobs": sustained.LEAST_LOSS_JOBS, "margin": sustained.MARGIN}
    limits |= {"bound": bound_ms, "growth_jobs": sustained.LEAST_GROWTH_JOBS}
    overview = [row for outcome in outcomes for row in _overview(outcome)]
    findings = Findings(
        summary="; ".join(outcome.sentence() for outcome in outcomes),
        notes=notes("saturation", outcomes=outcomes, **limits),
        tables=[Table.of(f"Sustained rates, held for {plan.hold_seconds:g} s", overview, OVERVIEW)],
    )
    for outcome in outcomes:
        _add(findings, outcome, at_least)
    return findings


def _add(findings: Findings, outcome: Outcome, at_least: float) -> None:
    """Add the targets, tables, plots, runs and figures of a scenario."""
    name, tries, held = outcome.scenario, outcome.tries, outcome.held
    least = min((step.answered for step in held), default=0.0)
    # At all rates: an overloaded service may refuse requests, but must not return wrong data.
    wrong = sum(tried.run.recording.requests.counts[WRONG] for tried in tries)
    findings.targets += [
        Target(f"{name}: rate that held", least, at_least, at_most=False, unit="jobs/s"),
        Target(f"{name}: wrong responses at any rate", wrong, 0, at_most=True),
        Target(f"{name}: void verdicts", int(outcome.verdict.void), 0, at_most=True),
    ]
    rows = [{"scenario": name, **tried.row} for tried in tries]
    findings.raw += rows
    findings.tables += [
        Table(f"{name}: evidence", EVIDENCE, list(_evidence(outcome))),
        Table.of(f"{name}: steps", rows, STEPS),
    ]
    findings.plots += _plots(outcome)
    # The runs at the first rate that held and at the one that failed.
    detailed = (*outcome.held[:1], outcome.failed)
    findings.runs += [replace(tried.run, detailed=any(tried is one for one in detailed)) for tried in tries]
    findings.figures |= {
        f"{name}: sustained jobs/s": [step.answered for step in held],
        f"{name}, at that rate: requests/s": [step.requests for step in held],
        f"{name}, at that rate: p95 of jobs, ms": [step.p95 for step in held],
    }


def _overview(outcome: Outcome) -> Iterator[dict[str, Any]]:
    """A row for each search: the rate that held and the lowest one that failed."""
    resource = f"{'void: ' if outcome.verdict.void else ''}{outcome.verdict.resource}"
    for count, found in enumerate(outcome.found, 1):
        row = found.held.row if found.held else {}
        row |= {"scenario": outcome.scenario, "search": count, "failed": found.failed and found.failed.rate}
        yield row | {"resource": resource}


def _evidence(outcome: Outcome) -> Iterator[tuple]:
    """The values of all rules at the rate that held and at the one that failed; the verdict is of the decisive step."""
    evidence = list(evaluate(outcome.decisive.watched))
    before = [one.measured for one in evaluate(outcome.held[0].watched)] if outcome.held else [None] * len(evidence)
    for one, held in zip(evidence, before, strict=True):
        failed, mark = one.measured if outcome.failed else None, "exhausted" if one.is_exhausted else ""
        yield one.resource.split(",")[0], held, failed, f"≥ {one.bound:g} {one.unit}", mark, one.remark


def _plots(outcome: Outcome) -> list[Plot]:
    """Curves against the rate that was due, with lines at the rate that held and at the one that failed.

    Several steps at the same rate are one point with whiskers.
    """
    steps = Sweep(("job starts due, 1/s",))
    for tried in outcome.tries:
        steps.add((tried.rate,), tried.run, tried.row)
    cpu = sorted({name for tried in outcome.tries for name in tried.row if name.startswith("cpu.")})

    def plot(title: str, y: str, *names: str, log_y: bool = False) -> Plot:
        drawn = steps.scaling(f"{outcome.scenario}: {title}", *names, y=y, log_x=False, log_y=log_y)
        [axes] = drawn.figure.axes
        if outcome.held:
            axes.axvline(outcome.held[0].rate, color="black", linestyle="--", linewidth=1, label="held")
        if outcome.failed:
            look = {"color": plots.COLOURS[9], "linestyle": ":", "linewidth": 1.4}
            axes.axvline(outcome.failed.rate, label=f"failed: {outcome.verdict.resource.split(',')[0]}", **look)
        plots.beside(axes)
        return drawn

    return [
        plot("answered against due", "jobs/s", "answered", "due"),
        plot("times of jobs, from when they were due", "ms", *TIMES, log_y=True),
        plot("processors", "cores", *cpu),
        plot("jobs in progress", "jobs", "in_progress"),
    ]
