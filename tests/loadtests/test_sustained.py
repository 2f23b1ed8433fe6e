"""The definition of a sustained rate, the search for the highest one, and the rules of exhausted resources."""

import itertools
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from loadtests.campaigns.resources import NOTHING, Watched, decide, evaluate
from loadtests.campaigns.saturation import Searches
from loadtests.campaigns.saturation_findings import Outcome
from loadtests.campaigns.search import Found, Plan, search
from loadtests.campaigns.stage import Stage
from loadtests.campaigns.sustained import judge
from loadtests.recording.outcome import NOT_SENT, OVERLOADED, WRONG
from loadtests.recording.rows import Sample
from loadtests.reporting.report import notes
from loadtests.reporting.result import Run, Signals
from tests.loadtests import recorded
from tests.loadtests.options import options

RATE, SECONDS = 50, 10


def jobs(milliseconds=20, late=0.0):
    """A job every 20 ms; `milliseconds` may be a function of its due time."""
    taken = milliseconds if callable(milliseconds) else lambda _: milliseconds
    for place in range(RATE * SECONDS):
        due = place / RATE
        yield recorded.job(due, taken(due))._replace(begin=recorded.START + due + late)
        yield recorded.request(due, taken(due) / 2)


def judged(tmp_path, rows):
    return judge(
        Run("step", recorded.read(tmp_path / "run", rows)), RATE, begin=2.0, end=float(SECONDS), bound_ms=1_000
    )


def test_judge_accepts_rate_of_fast_service(tmp_path):
    step = judged(tmp_path, jobs())
    assert step.sustained, step.faults
    assert (step.due, step.answered) == (pytest.approx(RATE, rel=0.01), pytest.approx(RATE, rel=0.01))
    assert step.requests == pytest.approx(RATE, rel=0.01)
    assert (step.p50, step.p99) == (pytest.approx(20, abs=0.1), pytest.approx(20, abs=0.1))
    # Little's law: 50 jobs a second of 20 ms each.
    assert step.in_progress == pytest.approx(1, abs=0.5)
    assert step.watched.begin == recorded.START + 2


def test_judge_rejects_growing_queue_with_fast_responses(tmp_path):
    step = judged(tmp_path, jobs(lambda due: 20 + due * 40))
    assert step.p95 < 500
    assert any("more jobs in progress" in fault for fault in step.faults)
    assert step.growth == pytest.approx(0.32 * RATE, rel=0.25)


def test_judge_rejects_slow_responses(tmp_path):
    assert judged(tmp_path, jobs(1_500)).faults == ("p95 1500 ms",)


def test_judge_rejects_fewer_responses_than_jobs_due(tmp_path):
    step = judged(tmp_path, jobs(lambda due: 20 if due < 2 else 20 + (due - 2) * 1_000))
    assert step.answered == pytest.approx(RATE / 2, rel=0.1)
    assert step.faults[0].startswith("answered 2")


@pytest.mark.parametrize("outcome", [OVERLOADED, WRONG])
def test_judge_rejects_single_failure_before_window(tmp_path, outcome):
    step = judged(tmp_path, [*jobs(), recorded.request(0.5, 10, outcome=outcome)])
    assert step.faults == ("1 failures",)


def test_judge_counts_unsent_job_as_failure(tmp_path):
    step = judged(tmp_path, [*jobs(), recorded.job(5.0, 0, outcome=NOT_SENT)])
    assert step.faults == ("1 failures",)


def test_judge_rejects_late_generator(tmp_path):
    step = judged(tmp_path, jobs(400, late=0.3))
    assert step.was_late
    assert step.faults == ("the generator was 300 ms late",)


def test_judge_rejects_step_without_jobs_in_window(tmp_path):
    step = judge(
        Run("step", recorded.read(tmp_path / "run", [recorded.job(0, 10)])), RATE, begin=2.0, end=10.0, bound_ms=1_000
    )
    assert step.was_late
    assert not step.sustained


@dataclass(frozen=True)
class Result:
    rate: float
    sustained: bool


PLAN = Plan(start=50, factor=1.4, most=5_000, precision=1.05, hold_seconds=60)


def searched(sustains, plan=PLAN):
    tried = []

    def at(rate, purpose, seconds):
        tried.append((rate, purpose, seconds))
        return Result(rate, sustains(rate, purpose))

    return search(at, plan), tried


@pytest.mark.parametrize("capacity", [20, 51, 333, 1_000])
def test_search_finds_capacity_within_precision(capacity):
    found, tried = searched(lambda rate, _: rate <= capacity)
    held, failed = found.held.rate, found.failed.rate
    assert capacity / PLAN.precision <= held <= capacity < failed <= held * PLAN.precision
    assert tried[-1] == (held, "holding", 60)
    assert found.held.sustained
    assert not found.failed.sustained


def test_search_lowers_rate_that_does_not_hold():
    found, _ = searched(lambda rate, purpose: rate <= (300 if purpose == "holding" else 333))
    assert 300 * 0.95 <= found.held.rate <= 300


def test_search_continues_after_one_failed_step():
    hiccups = itertools.count()
    found, _ = searched(lambda rate, _: rate <= 333 and not (rate > 90 and next(hiccups) == 0))
    assert found.held.rate > 317
    assert found.failed.rate > 333


def test_search_ends_without_sustained_rate():
    found, tried = searched(lambda *_: False)
    assert found.held is None
    assert len(tried) < 20


def test_search_ends_at_highest_allowed_rate():
    found, _ = searched(lambda *_: True, Plan(start=10, factor=2, most=50, precision=1.05, hold_seconds=5))
    assert (found.held.rate, found.failed) == (40, None)


def test_searches_add_processes_to_full_generator_up_to_cores(monkeypatch, tmp_path):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    stage = Stage(tmp_path, options=options("saturation", "--pattern", "last"))
    searches, cores = Searches(stage, "tiny"), iter((0.5, 0.9, 0.85, 0.99))
    monkeypatch.setattr(searches, "_once", lambda *_: SimpleNamespace(watched=watched(cpu=next(cores))))
    monkeypatch.setattr(stage, "say", lambda _: None)
    searches.at(250.0, "raising", None)
    assert searches.processes == 1
    searches.at(250.0, "raising", None)
    assert searches.processes == 3
    load = searches.load(250.0, 15)
    assert load.processes == 3
    assert load.options["pattern"] == "last"
    assert load.count * float(load.options["jobs-per-second"]) == pytest.approx(250)


CALM = {
    "cpu.machine": 1.0, "cpu.nginx": 0.1, "cpu.granian": 0.4, "cpu.postgres": 0.3,
    "cpu.generator": 0.3, "cpu.other": 0.05, "disk.busy": 0.1, "memory.machine": 4e9,
    "processes.granian": 4.0, "connections.active": 3.0, "connections.idle": 9.0,
    "waits.none": 3.0, "in_progress": 4.0, "queue_ms": 2.0,
    "memory.nginx": 5e7, "files.nginx": 120.0,
}  # fmt: skip


def watched(changes=None, cpu=0.3, grow=None, columns=CALM):
    rows = [{"time": 100.0 + second, **columns, **(changes or {})} for second in range(12)]
    for place, row in enumerate(rows):
        row.update({name: value * place for name, value in (grow or {}).items()})
    samples = [Sample(100.0 + second, cpu, 5.0, 10, 5) for second in range(12)]
    return Watched(Signals(rows), samples, 100.0, 112.0, cores=2, memory=16e9)


@pytest.mark.parametrize(
    ("changes", "resource"),
    [
        ({"cpu.machine": 1.9, "cpu.postgres": 0.9}, "the machine's processors, most of it postgres"),
        ({"waits.Lock:transactionid": 2.0, "waits.none": 1.0}, "locks in PostgreSQL"),
        ({"cpu.granian": 0.95, "processes.granian": 2.0}, "granian's processes"),
        ({"disk.busy": 0.97, "waits.IO:DataFileRead": 2.5}, "the disk"),
        ({"in_progress": 12.0, "queue_ms": 900.0}, "threads of the service"),
        ({"memory.machine": 15.8e9}, "memory"),
        # Busy threads are not exhausted while no request waits for one.
        ({"in_progress": 12.0}, NOTHING),
        ({}, NOTHING),
    ],
)
def test_decide_names_exhausted_resource(changes, resource):
    verdict = decide(watched(changes))
    assert verdict.resource == resource
    assert not verdict.void
    assert [one.resource for one in evaluate(watched(changes)) if one.is_exhausted][:1] == (
        [] if resource == NOTHING else [resource]
    )


def test_wait_in_one_sample_is_no_exhausted_resource():
    seen = watched()
    seen.signals.rows[3] |= {"waits.Lock:tuple": 3.0, "waits.none": 0.0}
    assert seen.means("waits.")["Lock:tuple"] == 3 / 12
    assert decide(seen).resource == NOTHING


def test_decide_names_cause_before_its_effects():
    short = {"cpu.machine": 1.95, "cpu.postgres": 1.0, "in_progress": 12.0, "queue_ms": 2_000.0}
    seen = watched(short)
    verdict = decide(seen)
    assert verdict.resource.startswith("the machine's processors")
    assert sum(one.is_exhausted for one in evaluate(seen)) == 2
    assert "postgres 1.00" in verdict.remark


@pytest.mark.parametrize(
    ("seen", "resource"),
    [
        (watched(cpu=0.97), "the generator, not the service"),
        (watched({"cpu.machine": 1.95, "cpu.other": 0.9}), "other programs on this machine"),
        # The mean hides that other programs used a processor when the service needed it.
        (watched({"cpu.other": 0.8}), "other programs on this machine"),
    ],
)
def test_verdict_about_test_itself_is_void(seen, resource):
    verdict = decide(seen)
    assert (verdict.resource, verdict.void) == (resource, True)


def test_verdict_of_late_generator_without_cause_is_void():
    assert decide(watched(), only_late=True).void
    assert not decide(watched({"disk.busy": 0.97}), only_late=True).void


@pytest.mark.parametrize(
    ("grow", "resource"),
    [({"memory.nginx": 1e8}, "memory that grows"), ({"files.nginx": 200.0}, "descriptors that grow")],
)
def test_decide_names_resource_that_grows(grow, resource):
    assert decide(watched(grow=grow)).resource == resource


def test_decide_uses_only_known_signals_of_deployment():
    told = {name: CALM[name] for name in ("in_progress", "queue_ms")}
    assert decide(watched(columns=told)).resource == NOTHING
    assert decide(watched({"in_progress": 12.0, "queue_ms": 900.0}, columns=told)).resource == "threads of the service"


@pytest.mark.parametrize(("columns", "is_sure"), [(CALM, True), ({"in_progress": 4.0}, False)])
def test_outcome_without_processor_usage_says_so(columns, is_sure):
    threads = {"in_progress": 12.0, "queue_ms": 900.0}
    tried = SimpleNamespace(
        rate=20.0,
        watched=watched(threads, columns=columns),
        answered=10.0,
        requests=20.0,
        was_late=False,
        faults=("3 failures",),
    )
    sentence = Outcome("tiny", [Found([tried, tried], held=tried, failed=tried)]).sentence()
    assert "the exhausted resource is threads of the service" in sentence
    assert sentence.endswith("the usage of its processors is unknown and may be the cause") is not is_sure
    # For a deployment, the signals have only the programs of the generator.
    tried.watched = watched(threads | {"cpu.generator": 0.2}, columns=columns)
    outcome = Outcome("tiny", [Found([tried, tried], held=tried, failed=tried)])
    limits = dict.fromkeys(("loss", "margin", "loss_jobs", "growth_jobs", "bound"), 1)
    told = notes("saturation", outcomes=[outcome], **limits)
    assert any("the generator ran on the same machine and used 0.20" in one for one in told) is is_sure
