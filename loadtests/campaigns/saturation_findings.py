"""The findings of the campaign saturation: verdicts, tables and plots of its searches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loadtests.campaigns import sustained
from loadtests.campaigns.resources import NOTHING, Evidence, decide, evaluate
from loadtests.campaigns.search import Found, Plan
from loadtests.campaigns.sustained import Step
from loadtests.recording.outcome import WRONG
from loadtests.reporting import plots
from loadtests.reporting.figures import grouped, number
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings, Plot, Table, Target

UNSEEN = ", by the metrics of the deployment; the usage of its processors is unknown and may be the cause"
# The columns of tables, by the names of `Step.row`.
TIMES = {"p50": "p50, ms", "p95": "p95, ms", "p99": "p99, ms"}
OVERVIEW = {"scenario": "scenario", "search": "search", "rate": "held, jobs/s", "answered": "answered, jobs/s"}
OVERVIEW |= {"requests": "requests/s", **TIMES, "failed": "lowest rate that failed, jobs/s"}
OVERVIEW |= {"resource": "exhausted resource"}
STEPS = {"label": "step", "offered": "due, jobs/s", "answered": "answered, jobs/s", **TIMES, "failures": "failures"}
STEPS |= {"in_progress": "in progress", "late": "late, ms (p99)", "cores": "generator, cores of one process"}
STEPS |= {"result": ""}
EVIDENCE = ("resource", "at the rate that held", "at the rate that failed", "exhausted from", "", "remark")


@dataclass
class Outcome:
    """The results of the searches in one scenario."""

    scenario: str
    found: list[Found]

    @property
    def tries(self) -> list[Step]:
        """All steps of all searches, by rate."""
        return sorted((tried for found in self.found for tried in found.tries), key=lambda tried: tried.rate)

    @property
    def held(self) -> list[Step]:
        """The step of each search at the rate that held, if there is one."""
        return [found.held for found in self.found if found.held]

    @property
    def failed(self) -> Step | None:
        """The step at the lowest rate that was not sustained, of the first search that has one; None without any."""
        return next((found.failed for found in self.found if found.failed), None)

    @property
    def decisive(self) -> Step:
        """The step of the verdict: the one that was not sustained or, if all were, the one at the highest rate."""
        return self.failed or self.tries[-1]

    @property
    def verdict(self) -> Evidence:
        """The exhausted resource in the decisive step; a limit may be reached even if all rates were sustained."""
        step = self.decisive
        return decide(step.watched, only_late=step.was_late and len(step.faults) == 1)

    @property
    def is_local(self) -> bool:
        """Whether the service ran on this machine, so that the usage of its processors is known."""
        return self.decisive.watched.mean("cpu.machine") is not None

    @property
    def resource(self) -> str:
        """The exhausted resource, with a remark for a remote deployment: most rules depend on the usage of processors."""
        return self.verdict.resource + ("" if self.is_local else UNSEEN)

    def sentence(self) -> str:
        """The outcome in a sentence."""
        if not self.held:
            return f"{self.scenario}: no rate held"
        step, verdict = self.held[0], self.verdict
        rate = f"{self.scenario}: {number(step.answered)} jobs/s ({number(step.requests)} requests/s) sustained"
        highest = f"at up to {number(self.decisive.rate)} jobs/s"
        if verdict.void:
            return f"{rate}; void because of {verdict.resource}"
        if self.failed is not None:
            return f"{rate}; the exhausted resource is {self.resource}"
        if verdict.resource == NOTHING:
            return f"{rate}, and nothing was exhausted {highest}{self.resource.removeprefix(NOTHING)}"
        return f"{rate}; no rate failed {highest}, but the exhausted resource there is {self.resource}"


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
    findings.plots += _plots(outcome, rows)
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
    resource = f"void: {outcome.verdict.resource}" if outcome.verdict.void else outcome.resource
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


def _plots(outcome: Outcome, rows: Sequence[dict[str, Any]]) -> list[Plot]:
    """Curves against the rate that was due, with lines at the rate that held and at the one that failed."""
    cpu = sorted({name for row in rows for name in row if name.startswith("cpu.")})

    def plot(title: str, columns: dict[str, str], y: str, *, log_y: bool = False) -> Plot:
        drawn = curves_of(f"{outcome.scenario}: {title}", rows, columns, y, log_y=log_y)
        [axes] = drawn.figure.axes
        if outcome.held:
            axes.axvline(outcome.held[0].rate, color="black", linestyle="--", linewidth=1, label="held")
        if outcome.failed:
            look = {"color": plots.COLOURS[9], "linestyle": ":", "linewidth": 1.4}
            axes.axvline(outcome.failed.rate, label=f"failed: {outcome.verdict.resource.split(',')[0]}", **look)
        plots.beside(axes)
        return drawn

    return [
        plot("answered against due", {"correct responses": "answered", "due": "rate"}, "jobs/s"),
        plot("times of jobs, from when they were due", {share: share for share in TIMES}, "ms", log_y=True),
        plot("processors", {name.removeprefix("cpu."): name for name in cpu}, "cores"),
        plot("jobs in progress", {"mean": "in_progress"}, "jobs"),
    ]


def curves_of(title: str, rows: Sequence[dict], columns: dict[str, str], y: str, *, log_y: bool = False) -> Plot:
    """A plot of columns against the rate; several steps at the same rate are one point with whiskers."""
    steps = {
        label: [
            (rate, [row[column] for row in group if row.get(column) is not None])
            for rate, group in grouped(rows, "rate").items()
        ]
        for label, column in columns.items()
    }
    return plots.scaling(title, steps, x="job starts due, 1/s", y=y, log_x=False, log_y=log_y)
