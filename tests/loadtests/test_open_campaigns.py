"""The campaigns with open loops in their smallest size, on a service and on a model of a service."""

import contextlib
import json

import numpy
import pytest

from loadtests.access_log import AccessLog, size_of
from loadtests.campaigns import peak, saturation
from loadtests.campaigns.peak import figures_of, findings_of
from loadtests.campaigns.stage import Stage
from loadtests.campaigns.sweep import Sweep
from loadtests.recording.outcome import OK, OVERLOADED, WRONG
from loadtests.reporting.result import Run, Signals
from tests.loadtests import recorded
from tests.loadtests.options import options

pytestmark = pytest.mark.xdist_group("open_campaigns")
JOBS, TOGETHER = 300, 60


@pytest.fixture(scope="module")
def directory(needs_packages, open_directory):
    return open_directory


@pytest.fixture(scope="module")
def database(directory):
    """Keep the database server running between campaigns."""
    stage = Stage(directory / "data")
    stage.data.mkdir()
    with stage.running_database():
        stage.seed("tiny")
        yield


@pytest.fixture
def stage(directory, database, tmp_path):
    def stage(campaign, *words):
        own = options(campaign, *words, quick=True)
        return Stage(directory / "data", output=tmp_path, quick=True, options=own)

    return stage


def target(findings, words):
    [found] = [target for target in findings.targets if words in target.name]
    return found


def test_saturation_finds_sustained_rate(stage):
    findings = saturation.run(stage("saturation", "--at-least", "5"))
    # The verdict may be void, because other tests run at the same time.
    assert [one.name for one in findings.targets if not one.met] in ([], ["tiny: void verdicts"]), findings.targets
    [held] = findings.figures["tiny: sustained jobs/s"]
    assert held == pytest.approx(target(findings, "rate that held").value)
    assert 5 <= held <= 25
    evidence = {row[0]: row[1] for row in findings.tables[1].rows}
    assert 0 < evidence["the machine's processors"] <= 1.05
    assert 0 < evidence["the generator"] < 1
    assert {row["result"] for row in findings.raw} == {"sustained"}
    assert len(findings.plots) == 4
    assert sum(run.detailed for run in findings.runs) == 1


def test_peak_counts_of_client_nginx_and_gunicorn_agree(stage):
    findings = peak.run(stage("peak", "--jobs", str(JOBS), "--together", str(TOGETHER)))
    assert findings.passed, findings.targets
    [run] = findings.runs
    jobs = run.recording.jobs
    assert len(jobs) == JOBS
    # All jobs that may run together begin before the first of the others.
    assert numpy.sort(jobs.begin)[TOGETHER - 1] < numpy.sort(jobs.begin)[TOGETHER]
    counts = findings.tables[1].rows[0]
    assert counts[1:] == (2 * JOBS,) * 5
    [row] = findings.raw
    assert row["jobs"] == JOBS
    assert 0 < row["p50_s"] <= row["p99_s"] <= row["max_s"] <= JOBS / row["rate"] * 1.001


class Formula(Stage):
    """A model of a service that processes `capacity` jobs per second, one after the other, with 5 ms of latency.

    Its processors are used in proportion. The generator uses `cores_for_a_job` for each job per second, and other programs
    use `others` cores.
    """

    capacity, cores_for_a_job, others, failing = 333.0, 0.001, 0.0, False

    @classmethod
    def of(cls, directory, *words):
        return cls(directory, output=directory, options=options("saturation", "--scenario", "tiny", *words))

    @contextlib.contextmanager
    def serving(self, **_):
        yield

    def say(self, _):
        pass

    def load(self, label, load, *, detailed=True):
        rate = load.count * float(load.options["jobs-per-second"])
        due = numpy.arange(load.count * load.options["jobs-per-user"]) / rate
        ends = due + 0.005
        for place, moment in enumerate(due):
            ends[place] = max(moment, ends[place - 1] - 0.005 if place else 0) + 1 / self.capacity + 0.005
        times = zip(due.tolist(), ((ends - due) * 1000).tolist(), strict=True)
        rows = (recorded.job, recorded.request) if self.failing else (recorded.job,)
        jobs = [
            row(moment, took, outcome=WRONG if self.failing else OK) for moment, took in list(times) for row in rows
        ]
        cores, seconds = rate * self.cores_for_a_job / load.processes, int(ends[-1]) + 1
        recording = recorded.read(self.output / label, jobs, recorded.samples(seconds, cpu=min(1.0, cores)))
        used = {"cpu.machine": 2 * min(1.0, rate / self.capacity), "cpu.postgres": min(1.0, rate / self.capacity)}
        used["cpu.other"] = self.others
        return Run(label, recording, Signals([{"time": recorded.START + second, **used} for second in range(seconds)]))


def test_saturation_finds_known_capacity(tmp_path):
    formula = Formula.of(tmp_path, "--hold", "20", "--repetitions", "3")
    findings = saturation.run(formula)
    assert findings.passed, findings.targets
    rates = findings.figures["tiny: sustained jobs/s"]
    assert len(rates) == 3
    assert all(0.94 * formula.capacity < rate <= 1.01 * formula.capacity for rate in rates)
    assert "the exhausted resource is the machine's processors, most of it postgres" in findings.summary
    # The steps at the rate that held and at the one that failed are detailed.
    assert sum(run.detailed for run in findings.runs) == 2


def test_saturation_with_full_generator_is_void(tmp_path):
    formula = Formula.of(tmp_path, "--repetitions", "1", "--hold", "15")
    formula.capacity, formula.cores_for_a_job = 300.0, 0.02
    findings = saturation.run(formula)
    assert target(findings, "void").value == 1
    assert not findings.passed
    assert "void because of the generator, not the service" in findings.summary


@pytest.mark.parametrize(
    ("service", "is_void", "said"),
    [
        ({"capacity": 1e4}, False, "sustained, and nothing was exhausted at up to 50.0 jobs/s"),
        ({"capacity": 1e4, "others": 0.6}, True, "void because of other programs on this machine"),
        ({"capacity": 1e4, "cores_for_a_job": 0.04}, True, "void because of the generator, not the service"),
        (
            {"capacity": 54.0},
            False,
            "at up to 50.0 jobs/s, but the exhausted resource there is the machine's processors",
        ),
    ],
)
def test_saturation_names_exhausted_resource_if_all_rates_were_sustained(tmp_path, monkeypatch, service, is_void, said):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    formula = Formula.of(tmp_path, "--most", "60", "--hold", "20", "--repetitions", "1")
    vars(formula).update(service)
    findings = saturation.run(formula)
    assert said in findings.summary
    assert target(findings, "void").value == is_void
    assert findings.passed is not is_void
    marks = {row[0]: row[4] for row in findings.tables[1].rows}
    assert list(marks.values()).count("exhausted") == ("nothing was exhausted" not in said)


@pytest.mark.parametrize("failing", [True, False])
def test_saturation_fails_without_sustained_rate(tmp_path, failing):
    formula = Formula.of(tmp_path, "--bound", "1000" if failing else "4")
    formula.failing = failing
    findings = saturation.run(formula)
    assert not findings.passed
    assert findings.summary == "tiny: no rate held"
    assert target(findings, "wrong responses").met is not failing


def line(second, took, uri="/api/cdb_rest/globalTags", status=200, upstream="0.010"):
    row = {"time": f"2026-11-21T18:59:{second:02d}+00:00", "uri": uri, "status": status, "request_time": took}
    return (json.dumps(row | {"upstream_response_time": upstream}) + "\n").encode()


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "access.log"
    path.write_bytes(line(1, 9.0))
    return path


def test_access_log_is_read_from_offset_without_incomplete_line(log):
    offset = size_of(log)
    with log.open("ab") as file:
        file.write(line(2, 0.5) + line(3, 0.1, uri="/metrics") + line(4, 20.0, status=504, upstream="-"))
        file.write(line(5, 1.5, upstream="0.200, 0.300 : 0.100") + line(6, 0.1)[:-20])
    found = AccessLog.read(log, offset)
    assert found.seconds.tolist() == [0.5, 20.0, 1.5]
    assert found.statuses.tolist() == [200, 504, 200]
    assert (found.ends - found.ends[0]).tolist() == [0, 2, 3]
    assert found.passed_on.tolist() == [1, 0, 1]


def test_missing_access_log_is_empty(tmp_path):
    assert size_of(tmp_path / "access.log") == 0
    assert len(AccessLog.read(tmp_path / "access.log")) == 0


def test_peak_fails_if_counts_differ(tmp_path, log):
    rows = [recorded.job(0, 900), recorded.request(0, 400), recorded.request(0.4, 500, outcome=OVERLOADED)]
    run = Run("burst", recorded.read(tmp_path / "run", rows), counters={'cdb_requests_total{status="200"}': 3.0})
    figures = figures_of(run, AccessLog.read(log))
    assert (figures["p50_s"], figures["max_s"], figures["busiest"]) == (pytest.approx(0.9), pytest.approx(0.9), 1)
    bursts = Sweep(("scenario",))
    bursts.add(("tiny",), run, figures)
    findings = findings_of(bursts, jobs=2, together=1, within=0.5)
    assert {one.name: one.value for one in findings.targets if not one.met} == {
        "jobs that did not end": 1,
        "requests without the correct response": 1,
        "time until all jobs had ended": pytest.approx(0.9),
        "responses: difference between client and nginx's log": 1,
        "requests passed on: difference between nginx and the service": 2,
    }
