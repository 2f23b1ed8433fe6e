"""The comparison of two reports: it finds real changes and ignores noise."""

import json
import statistics

import numpy
import pytest

from loadtests.__main__ import main
from loadtests.recording.outcome import GENERATOR_ERROR
from loadtests.reporting import campaign, compare, noise
from loadtests.reporting.result import Findings, Run, Table
from tests.loadtests.recorded import job, read, request, steady
from tests.loadtests.test_report import Checker

FIGURES = {"tiny: responses/s": [100.0, 101, 99, 100.5], "tiny: ms": [10.0, 10.2, 9.9, 10.1], "gone: ms": [1.0]}
SLOWER = {"tiny: responses/s": [100.2, 99.5, 100.8, 101], "tiny: ms": [11.0, 11.2, 10.9, 11.1], "new: ms": [1.0]}


def document(directory, seed, factor=1.0, figures=None, facts=(), settings=None, name="threads"):
    """Write the findings file of a campaign, and return its directory."""
    run = Run("steady", read(directory / "run", steady(seed, factor)), settings=settings or {})
    findings = Findings(summary="All is well", runs=[run], figures=figures or {})
    table = Table("Facts", ("", ""), [("date", str(seed)), ("cores", "2"), *facts])
    found = campaign.document(name, "Load test: Threads", findings, table)
    (directory / campaign.FILE).write_text(json.dumps(found))
    return directory


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    home = tmp_path_factory.mktemp("compare")
    return {
        "before": document(home / "before", 1, figures=FIGURES, settings={"pause": "0"}),
        "again": document(home / "again", 2, figures=FIGURES, settings={"pause": "0"}),
        "slower": document(
            home / "slower", 3, 1.1, figures=SLOWER, facts=[("PostgreSQL", "18")], settings={"pause": "1"}
        ),
        "hammer": document(home / "hammer", 1, name="hammer"),
    }


def verdicts(reports, before, after):
    rows = compare.rows_of(compare.read(reports[before]), compare.read(reports[after]))
    return {row.name: row.verdict for row in rows}


def test_compare_reports_no_change_of_equal_service(reports):
    for after in ("before", "again"):
        found = verdicts(reports, "before", after)
        assert len(found) == 3 + 8
        assert set(found.values()) <= {compare.UNCHANGED, compare.UNKNOWN}
        # No block of 200 requests has two that took longer than p99.9.
        assert [name for name, verdict in found.items() if verdict == compare.UNKNOWN] in (
            ["steady, lookup, p99.9: ms", "steady, lookup, max: ms"],
            ["gone: ms", "steady, lookup, p99.9: ms", "steady, lookup, max: ms"],
        )


def test_compare_finds_change_of_ten_percent(reports):
    found = verdicts(reports, "before", "slower")
    assert found["tiny: responses/s"] == found["steady, lookup: requests/s"] == compare.UNCHANGED
    for name in ("tiny: ms", "steady, lookup, p50: ms", "steady, lookup, p90: ms", "steady, lookup, p95: ms"):
        assert found[name] == "slower", name
        assert verdicts(reports, "slower", "before")[name] == "faster", name
    assert (found["gone: ms"], found["new: ms"]) == (compare.ONLY_BEFORE, compare.ONLY_AFTER)


@pytest.mark.parametrize(
    ("before", "after", "real"),
    [
        ([10, 11, 12], [20, 21, 22], True),
        ([10, 11, 12], [12.5, 13, 14], False),
        ([10, 11, 12], [11, 12, 13], False),
        ([10, 11], [12.2, 13], False),
        ([10, 11], [13, 14], True),
        ([10, 11, 12, 13], [14, 15, 16, 17], True),
        ([10, 11, 12, 13], [12, 15, 16, 17], False),
        ([10, 11, 11, 12], [14, 15, 15, 16], True),
        (list(range(100, 150)), list(range(104, 154)), False),
        (list(range(100, 150)), list(range(120, 170)), True),
        ([100, 100.1, 100.2, 100.3], [101, 101.1, 101.2, 101.3], False),
        ([10], [20], None),
        ([10], [10], False),
        ([0, 0], [0, 0], False),
        ([0, 0], [5, 5], None),
    ],
)
def test_compare_judges_repetitions(before, after, real):
    assert noise.of_repetitions(before, after).real is real


@pytest.mark.parametrize(
    ("failed", "real"), [((0, 0), False), ((0, 3), False), ((0, 100), True), ((100, 110), False), ((100, 10), True)]
)
def test_compare_judges_shares_of_failures(failed, real):
    assert noise.of_shares(failed, (10_000, 10_000)).real is real


def test_compare_reports_small_change_of_share():
    assert noise.of_repetitions([100, 100, 100, 100], [98, 98.1, 98, 97.9]).real is False
    assert noise.of_repetitions([100, 100, 100, 100], [98, 98.1, 98, 97.9], least=0).real is True


NOISY = [10.0, 10.5, 9.5] * 10


@pytest.mark.parametrize(
    ("after", "real"),
    [
        (NOISY, False),
        ([value * 1.1 for value in NOISY], True),
        ([value * 1.02 for value in NOISY], False),
        # One block with a stall.
        ([*NOISY[1:], 100.0], False),
        ([*[None] * 15, *[11.0] * 15], True),
        ([*[None] * 16, *[11.0] * 14], None),
        ([*[0.0] * 29, 300.0], None),
    ],
)
def test_compare_judges_blocks_of_single_runs(after, real):
    change = noise.of_blocks(NOISY, after, ratio=statistics.mean(one for one in after if one is not None) / 10)
    assert change.real is real
    assert real is None or change.low <= change.ratio <= change.high


def test_percentile_of_blocks_does_not_depend_on_their_sizes():
    """Nearest ranks of small blocks would be too low."""
    few, many = ([noise._percentile(part, 99) for part in drawn(size)] for size in (200, 2000))
    assert numpy.mean(few) == pytest.approx(numpy.mean(many), rel=0.02)
    assert noise._percentile(numpy.arange(199), 99) is None


def drawn(size):
    return numpy.random.default_rng(1).lognormal(0, 0.5, (1000, size))


@pytest.mark.filterwarnings("error")
def test_compare_gives_no_verdict_on_single_storms(tmp_path):
    """All requests of a storm are due at once, in a single block of time."""
    pair = []
    for name, factor in (("before", 1.0), ("after", 1.1)):
        times = (one.end - one.due for one in steady(1, factor, seconds=3))
        storm = [request(0, 1000 * time + factor * place) for place, time in enumerate(times)]
        findings = Findings(runs=[Run("storm", read(tmp_path / name, storm))])
        pair.append(campaign.document("storm-cache", "Storm", findings, Table("", ("", ""), [])))
    rows = compare.rows_of(*json.loads(json.dumps(pair, default=float)))
    found = {row.name: row.verdict for row in rows}
    assert found["storm, lookup: requests/s"] == found["storm, lookup, p50: ms"] == compare.UNKNOWN


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("frozen: p50 ms", "slower"),
        ("tiny, at that rate: p95 of jobs, ms", "slower"),
        ("tiny, at that rate: requests/s", "faster"),
        ("frozen: responses/s", "faster"),
        ("frozen: by nginx alone %", "more"),
        ("rows", "more"),
    ],
)
def test_verdict_depends_on_unit(name, verdict):
    assert compare._verdict(name, noise.Change(1.5, real=True)) == verdict


def test_first_failures_are_more_failures():
    assert compare._verdict("lookup, failed: %", noise.of_shares((0, 100), (1000, 1000))) == "more"


def test_compare_writes_files_and_prints_table(reports, tmp_path, capsys):
    assert main(["compare", str(reports["before"]), str(reports["slower"]), "--output", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "steady, lookup, p50: ms" in told
    assert "slower" in told
    assert told.rstrip().endswith(str(tmp_path / "compare.html"))
    page, markdown = (tmp_path / "compare.html").read_text(), (tmp_path / "compare.md").read_text()
    checker = Checker()
    checker.feed(page)
    assert (checker.open, checker.fetched, checker.seen.count("svg")) == ([], [], 1)
    text = " ".join(checker.text)
    for row in compare.rows_of(*(compare.read(reports[name]) for name in ("before", "slower"))):
        assert f"| {' | '.join(row.cells)} |" in markdown
        assert all(cell in text for cell in row.cells)
    for warning in (
        "Warning: PostgreSQL is not the same: unknown and 18.",
        "Warning: the load of steady is not the same: pause 0 and 1.",
    ):
        assert warning in text
        assert warning in told
    assert "date is not the same" not in text
    assert sorted(path.suffix for path in (tmp_path / "plots").iterdir()) == [".png", ".svg"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "cannot be read: No such file"),
        ("nonsense", "is not JSON"),
        ('{"format": 0}', "was not written by this version"),
        ("[]", "was not written by this version"),
    ],
)
def test_compare_rejects_unreadable_report_in_one_line(reports, tmp_path, capsys, content, expected):
    if content:
        (tmp_path / campaign.FILE).write_text(content)
    assert main(["compare", str(reports["before"]), str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_compare_rejects_reports_of_different_campaigns(reports, capsys):
    assert main(["compare", str(reports["before"]), str(reports["hammer"])]) == 1
    assert capsys.readouterr().err == "load: reports of different campaigns cannot be compared: threads and hammer\n"


def test_compare_omits_figures_without_values_on_both_sides():
    """In both campaigns no rate held."""
    told = {"figures": {"tiny: sustained jobs/s": []}, "failed": {}, "measured": {}}
    assert compare.rows_of(told, told) == []


def test_compare_warns_of_failed_campaign():
    good = {"facts": {}, "loads": {}, "passed": True}
    assert compare._differences(good, good) == []
    [warning] = compare._differences(good, good | {"passed": False})
    assert warning.startswith("Warning: the campaign of B did not pass")
    [warning] = compare._differences(good | {"passed": None}, good)
    assert warning.startswith("Warning: the campaign of A was too small for verdicts")


def test_compare_accepts_run_without_requests(tmp_path):
    """The generator failed before its first request."""
    recording = read(tmp_path / "run", [job(0, 0, outcome=GENERATOR_ERROR)])
    table = Table("", ("", ""), [])
    told = json.loads(json.dumps(campaign.document("smoke", "", Findings(runs=[Run("run", recording)]), table)))
    assert {row.verdict for row in compare.rows_of(told, told)} <= {compare.UNCHANGED, compare.UNKNOWN}
