"""The campaigns hammer and storm-cache in their smallest size, and the storm against known faults."""

import pytest

from loadtests import burst, job_starts
from loadtests.campaigns import hammer, storm_cache
from loadtests.campaigns.stage import Stage
from loadtests.recording import outcome
from loadtests.service import ServiceError
from tests.loadtests.harness_runs import fake, noted
from tests.loadtests.options import options

pytestmark = pytest.mark.xdist_group("hard campaigns")

MOMENT = {"major": 2**30, "minor": 0}
JOBS = 60


@pytest.fixture(scope="module")
def stage(needs_packages, open_directory):
    stage = Stage(open_directory / "data", output=open_directory, quick=True)
    stage.data.mkdir()
    with stage.running_database():
        yield stage


def test_hammer_reports_outcomes_of_each_cell(stage, monkeypatch):
    monkeypatch.setattr(hammer, "QUICK_COUNTS", (4, 8, 16))
    stage.options = options("hammer", "--scenario", "tiny", "--scale", "0.01", quick=True)
    findings = hammer.run(stage)
    said = (stage.data / "serve" / "error.log").read_text()[-3000:]
    assert findings.passed, (findings.summary, [run.recording.examples for run in stage.runs], said)
    assert findings.summary.startswith("100.00 % of 420 requests")
    tables = {table.title.split(" (")[0]: table for table in findings.tables}
    assert [len(tables[name].rows) for name in ("By offset", "By number of requests", "By route", "Each cell")] == [
        5,
        3,
        3,
        45,
    ]
    for table in tables.values():
        if table.columns[1:] == tuple(hammer.COLUMNS.values()):
            assert sum(row[1] for row in table.rows) == 420
    [(sent, received, started, finished)] = tables["Lookups on the way"].rows
    # nginx may respond to equal lookups from its cache; all others reach the database.
    assert sent == 140 >= received == started == finished > 0
    assert "times the study's rate" in findings.notes[0]
    assert len(findings.raw) == 45
    assert sum(row[outcome.OK] for row in findings.raw) == 420


def test_hammer_counts_missing_requests_as_other(stage):
    requests = stage.runs[0].recording.requests
    cell = hammer.Wave("lookup", 4, 50)
    assert hammer.outcomes_of(requests, [cell])[outcome.OK] == 100
    without = requests.where(requests.names != cell.name)
    found = hammer.outcomes_of(without, [cell])
    assert (found["requests"], found[outcome.OK], found["other"]) == (4, 0, 100)


def test_storm_cache_reports_share_served_by_nginx(stage):
    stage.options = options("storm-cache", "--scenario", "tiny", "--jobs", str(JOBS), quick=True)
    stage.runs.clear()
    findings = storm_cache.run(stage)
    assert findings.passed, (findings.summary, [run.recording.examples for run in stage.runs])
    assert len(stage.runs) == 3
    # `compare` warns of settings that differ from one report to the next.
    assert set(stage.runs[0].settings) == {"start-jobs", "jobs", "scenario", "global_tag"}
    assert all((run.recording.requests.outcomes == outcome.OK).sum() == JOBS for run in stage.runs)
    [frozen] = findings.figures["frozen: by nginx alone %"]
    [unlocked] = findings.figures["unlocked: by nginx alone %"]
    assert frozen > unlocked == 0
    assert findings.figures["locked: p50 ms"][0] <= findings.figures["locked: p99 ms"][0]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("none", outcome.OK),
        ("error --status 504", outcome.OVERLOADED),
        ("close", outcome.NO_RESPONSE),
        ("truncated", outcome.NO_RESPONSE),
        ("wrong-value", outcome.WRONG),
    ],
)
def test_burst_records_outcome_of_each_fault(tmp_path, fault, expected):
    given = {"jobs": JOBS, "scenario": "tiny", "global_tag": "tiny", "patience": 20, **MOMENT}
    with fake(f"{fault} --every 10", tmp_path / "fake") as (url, log):
        recording = burst.run(url, tmp_path / "recording", given)
        server = noted(log)
    assert len(server) == JOBS == len(recording.requests)
    found = recording.requests.outcomes.tolist()
    assert found.count(expected) >= JOBS // 10
    assert found.count(outcome.OK) == (JOBS if expected == outcome.OK else JOBS - JOBS // 10)
    assert recording.samples[0].cpu > 0


def test_burst_records_no_response_of_absent_server(tmp_path):
    given = {"jobs": 3, "scenario": "tiny", "global_tag": "tiny", "patience": 20, **MOMENT}
    recording = burst.run("http://127.0.0.1:9", tmp_path, given)
    assert recording.requests.outcomes.tolist() == [outcome.NO_RESPONSE] * 3


@pytest.mark.parametrize(
    ("fault", "expected"),
    [("none", "lookup: 20 sent, 20 answered, errors none"), ("error --status 504", "answered, errors {504: ")],
)
def test_job_starts_count_answers_and_errors(tmp_path, capsys, fault, expected):
    with fake(f"{fault} --every 10", tmp_path / "fake") as (url, _):
        code = job_starts.main(["--host", url, "--clients", "20"])
    assert expected in capsys.readouterr().out
    assert code == (0 if fault == "none" else 1)


def test_storm_of_too_many_files_is_rejected_in_one_line():
    # More than any kernel allows, even for root.
    with pytest.raises(ServiceError, match=r"needs 4,294,967,296 open files.*ulimit -Hn"):
        burst.allow_files(2**32 - burst.SPARE_FILES)
