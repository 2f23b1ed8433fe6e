"""The report of the campaign saturation: verdicts with their evidence, steps, plots."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes

from loadtests.campaigns import resources, sustained
from loadtests.campaigns.resources import Evidence, Verdict
from loadtests.campaigns.search import Found, Plan
from loadtests.campaigns.watched import Watched
from loadtests.recording.outcome import WRONG
from loadtests.reporting import canvas, plots
from loadtests.reporting.figures import number
from loadtests.reporting.findings import Findings
from loadtests.reporting.result import Plot, Table, Target

Points = dict[str, list[tuple[float, float]]]
OFFERED = "job starts due, 1/s"
# Programs that use less are not plotted.
LEAST_CORES = 0.02
UNSEEN = ", by the metrics of the deployment; the usage of its processors is unknown and may be the cause"


@dataclass
class Outcome:
    """The results of the searches in one scenario."""

    scenario: str
    found: list[Found]

    @property
    def tries(self) -> list[Any]:
        """All steps of all searches, by rate."""
        return sorted((tried for found in self.found for _, _, tried in found.tries), key=lambda tried: tried.rate)

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

    def verdict(self) -> Verdict:
        """The resource that ran out in the decisive step; a limit may be reached even if all rates were sustained."""
        step = self.decisive.step
        only_late = step.was_late and len(step.faults) == 1
        return resources.decide(self.decisive.watched, only_late=only_late)


def findings_of(outcomes: Sequence[Outcome], plan: Plan, *, bound_ms: float, at_least: float) -> Findings:
    """The findings of the campaign; `at_least` is the rate at which it passes."""
    findings = Findings(
        summary="; ".join(_sentence(outcome) for outcome in outcomes),
        notes=_notes(outcomes, bound_ms),
    )
    for outcome in outcomes:
        _add(findings, outcome, at_least)
    findings.tables.insert(0, _overview(outcomes, plan))
    return findings


def _add(findings: Findings, outcome: Outcome, at_least: float) -> None:
    name, verdict = outcome.scenario, outcome.verdict()
    rates = [tried.step.answered for tried in outcome.held]
    # At all rates: an overloaded service may refuse requests, but must not return wrong data.
    wrong = sum(int((tried.run.recording.requests.outcomes == WRONG).sum()) for tried in outcome.tries)
    findings.targets += [
        Target(f"{name}: rate that held", min(rates, default=0.0), at_least, at_most=False, unit="jobs/s"),
        Target(f"{name}: wrong responses at any rate", wrong, 0, at_most=True),
        Target(f"{name}: void verdicts", int(verdict.void), 0, at_most=True),
    ]
    findings.figures |= {
        f"{name}: sustained jobs/s": rates,
        f"{name}: requests/s at that rate": [tried.step.requests for tried in outcome.held],
        f"{name}: p95 of jobs at that rate, ms": [tried.step.p95 for tried in outcome.held],
    }
    findings.tables += [_evidence_table(outcome, verdict), _steps_table(outcome)]
    findings.plots += _plots(outcome, verdict)
    shown = [*outcome.held[:1], *([outcome.broken] if outcome.broken else [])]
    for tried in outcome.tries:
        findings.runs.append(replace(tried.run, detailed=any(tried is one for one in shown)))
        row = {"scenario": name, "label": tried.run.label, "sustained": tried.sustained, **vars(tried.step)}
        findings.raw.append(row | {"faults": "; ".join(tried.step.faults)})


def _sentence(outcome: Outcome) -> str:
    held, verdict = outcome.held, outcome.verdict()
    if not held:
        return f"{outcome.scenario}: no rate held"
    step = held[0].step
    rate = f"{outcome.scenario}: {number(step.answered)} jobs/s ({number(step.requests)} requests/s) sustained"
    if verdict.void:
        return f"{rate}; void because of {verdict.resource}"
    if outcome.broken is None:
        highest = f"at up to {number(outcome.decisive.rate)} jobs/s"
        if verdict.resource == resources.NOTHING:
            return f"{rate}, and nothing ran out {highest}{_unseen(outcome)}"
        return f"{rate}; no rate broke {highest}, but what ran out there is {verdict.resource}{_unseen(outcome)}"
    return f"{rate}; what ran out is {verdict.resource}{_unseen(outcome)}"


def _unseen(outcome: Outcome) -> str:
    """A remark if the usage of processors is unknown, as for a remote deployment: most rules depend on it."""
    return "" if outcome.decisive.watched.mean("cpu.machine") is not None else UNSEEN


def _notes(outcomes: Sequence[Outcome], bound_ms: float) -> list[str]:
    notes = [
        sustained.MEANING,
        f"The bound for 95 % of the jobs is {bound_ms:g} ms. A job is two requests, each over a new connection: the list of "
        "tags, then the lookup. Each step is a new process of the generator, so that it does not inherit a queue.",
        "The verdict is about the lowest rate that was not sustained or, if all were, the highest one. It is the first rule in "
        "the table of evidence that reports an exhausted resource. Causes come before consequences.",
    ]
    for outcome in outcomes:
        watched = outcome.decisive.watched
        if cores := watched.cpu("generator"):
            notes.append(
                f"{outcome.scenario}: the generator ran on the same machine and used {cores:.2f} of {watched.cores} cores, which "
                "the service would have with the generator on another machine."
            )
    return notes


def _overview(outcomes: Sequence[Outcome], plan: Plan) -> Table:
    rows = []
    for outcome in outcomes:
        verdict = outcome.verdict()
        for count, found in enumerate(outcome.found, 1):
            tried = found.last(found.held) if found.held else None
            step = tried and tried.step
            resource = f"void: {verdict.resource}" if verdict.void else f"{verdict.resource}{_unseen(outcome)}"
            rows.append(
                (outcome.scenario, count, found.held, step and step.answered, step and step.requests, step and step.p50,
                 step and step.p95, step and step.p99, found.broke, resource)
            )  # fmt: skip
    columns = (
        "scenario", "search", "held, jobs/s", "answered, jobs/s", "requests/s", "p50, ms", "p95, ms", "p99, ms",
        "lowest that broke, jobs/s", "what ran out",
    )  # fmt: skip
    return Table(f"Sustained rates, held for {plan.hold_seconds:g} s", columns, rows)


def _evidence_table(outcome: Outcome, verdict: Verdict) -> Table:
    """The values of all rules at the rate that held and at the one that broke.

    The verdict is that of the decisive step.
    """
    held = outcome.held
    before: Sequence[Evidence] = resources.decide(held[0].watched).evidence if held else ()
    at_held = {index: one.measured for index, one in enumerate(before)}
    rows = [
        (_resource(one), at_held.get(index), one.measured if outcome.broken else None, f"≥ {one.bound:g} {one.unit}",
         "ran out" if one.ran_out else "", one.remark)
        for index, one in enumerate(verdict.evidence)
    ]  # fmt: skip
    columns = ("resource", "at the rate that held", "at the rate that broke", "ran out from", "", "remark")
    return Table(f"{outcome.scenario}: evidence", columns, rows)


def _resource(evidence: Evidence) -> str:
    return evidence.resource.split(",")[0]


def _steps_table(outcome: Outcome) -> Table:
    rows = []
    for tried in outcome.tries:
        step, generator = tried.step, tried.watched.generator()
        rows.append(
            (tried.run.label, step.offered, step.answered, step.p50, step.p95, step.p99, step.failures, step.in_progress,
             step.growth, step.late, generator, "sustained" if step.sustained else "; ".join(step.faults))
        )  # fmt: skip
    columns = (
        "step", "due, jobs/s", "answered, jobs/s", "p50, ms", "p95, ms", "p99, ms", "failures", "in progress", "its growth",
        "late, ms (p99)", "generator, cores of one process", "",
    )  # fmt: skip
    return Table(f"{outcome.scenario}: steps", columns, rows)


def _plots(outcome: Outcome, verdict: Verdict) -> list[Plot]:
    tries, name = outcome.tries, outcome.scenario
    mark = _mark(outcome, verdict)
    times: Points = {
        label: [(tried.rate, getattr(tried.step, label)) for tried in tries if getattr(tried.step, label)]
        for label in ("p50", "p95", "p99")
    }
    rates: Points = {
        "answered rightly": [(tried.rate, tried.step.answered) for tried in tries],
        "as due": [(tried.rate, tried.rate) for tried in tries],
    }
    return [
        _curves(f"{name}: answered against due", rates, "jobs/s", mark),
        _curves(f"{name}: times of jobs, from when they were due", times, "ms", mark, log_y=True),
        _curves(f"{name}: processors", _cpu(tries), "cores", mark),
        _curves(f"{name}: jobs in progress", {"mean": [(one.rate, one.step.in_progress) for one in tries]}, "jobs", mark),
    ]  # fmt: skip


def _cpu(tries: Sequence[Any]) -> Points:
    def points(read: Callable[[Watched], float | None]) -> list[tuple[float, float]]:
        values = [(tried.rate, read(tried.watched)) for tried in tries]
        return [(offered, value) for offered, value in values if value is not None]

    names = {name for tried in tries for name, cores in tried.watched.programs().items() if cores >= LEAST_CORES}
    curves = {name: points(lambda watched, name=name: watched.cpu(name)) for name in sorted(names)}
    return {"all": points(lambda watched: watched.mean("cpu.machine")), **curves}


def _mark(outcome: Outcome, verdict: Verdict) -> Callable[[Axes], None]:
    """A function that draws lines at the rate that held and at the one that broke, with the exhausted resource."""

    def mark(axes: Axes) -> None:
        if outcome.held:
            axes.axvline(outcome.held[0].rate, color="black", linestyle="--", linewidth=1, label="held")
        if outcome.broken:
            label = f"broke: {verdict.resource.split(',')[0]}"
            axes.axvline(outcome.broken.rate, color=canvas.COLOURS[9], linestyle=":", linewidth=1.4, label=label)

    return mark


def _curves(title: str, series: Points, y: str, mark: Callable[[Axes], None], *, log_y: bool = False) -> Plot:
    """A plot of curves; several steps at the same rate are one point with whiskers."""
    steps = {
        name: [(rate, [value for at, value in points if at == rate]) for rate in sorted({at for at, _ in points})]
        for name, points in series.items()
    }
    return plots.scaling(title, steps, x=OFFERED, y=y, log_x=False, log_y=log_y, mark=mark)
