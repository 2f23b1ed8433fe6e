"""Campaigns of closed loops, as small as they get, on one real service; and the arithmetic behind their tables."""

import itertools
import json
import subprocess
import sys

import numpy
import pytest

from cdb.env import ROOT
from cdb_rest.domain.moment import END_OF_TIME
from loadtests import blocks
from loadtests.campaigns import endpoints, growth, scenarios, threads, types_iovs, workers
from loadtests.campaigns.api import send
from loadtests.campaigns.findings import Run
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.lookups import COLUMNS, QUICK_CALLS, Lookups, Repeated, in_turns
from loadtests.campaigns.stage import NeedsOwnServiceError, Stage
from loadtests.recording.outcome import OK, WRONG
from loadtests.recording.reading import Recording
from loadtests.recording.writer import Sample
from loadtests.rig import GOOD_TAG
from loadtests.service import ServiceError, running
from loadtests.tags import scenario_of, sized_tag

# They share one service.
pytestmark = pytest.mark.xdist_group("closed-campaigns")


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """With a database in which the tags are that quick campaigns ask about."""
    stage = Stage(tmp_path_factory.mktemp("load") / "data", quick=True)
    stage.data.mkdir()
    with stage.running_database():
        stage.seed("tiny", *(sized_tag("sized", types, 10) for types in types_iovs.QUICK_TYPES))
        yield stage


@pytest.fixture(scope="module")
def url(stage):
    with running(stage.settings, workers=2) as service:
        yield f"http://127.0.0.1:{service.port}"


@pytest.fixture
def on_service(stage, url, tmp_path):
    """Makes the stage of a campaign that is pointed at a running service, with options."""
    return lambda **options: Stage(stage.data, output=tmp_path, host=url, quick=True, options=options)


def shown(findings, title):
    """The cells of one column of the first table."""
    place = findings.tables[0].columns.index(title)
    return [row[place] for row in findings.tables[0].rows]


@pytest.mark.slow
def test_scenarios_tell_rows_of_each_pattern(on_service):
    findings = scenarios.run(on_service(scenarios="tiny"))
    assert findings.passed, findings.targets
    assert shown(findings, "moments") == ["first", "random", "last"]
    assert shown(findings, "rows per answer")[::2] == ["0 (0–0)", "10.0 (10.0–10.0)"]
    assert shown(findings, "remark") == ["nothing is valid yet", "", ""]
    assert shown(findings, "lookups") == [scenarios.QUICK_THREADS * scenarios.QUICK_CALLS] * 3
    assert len(findings.figures["tiny, random: lookups/s"]) == scenarios.QUICK_REPETITIONS
    assert len(findings.plots) == 3


@pytest.mark.slow
def test_threads_share_the_calls(on_service, monkeypatch):
    monkeypatch.setattr(threads, "QUICK_THREADS", (1, 8))
    findings = threads.run(on_service())
    assert findings.passed, findings.targets
    assert shown(findings, "threads") == [1, 8]
    assert shown(findings, "lookups") == [threads.QUICK_CALLS] * 2
    assert findings.figures["8 threads: p99 ms"][0] > 0


@pytest.mark.slow
def test_every_number_of_processes_is_a_service_of_its_own(stage, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "QUICK_THREADS", (4,))
    findings = workers.run(Stage(stage.data, output=tmp_path, quick=True))
    assert findings.passed, findings.targets
    assert shown(findings, "processes") == [1, 2]
    assert shown(findings, "lookups") == [4 * QUICK_CALLS] * 2


def test_somebody_elses_service_is_not_started_anew(on_service):
    with pytest.raises(NeedsOwnServiceError):
        workers.run(on_service())


@pytest.mark.slow
def test_types_and_iovs_are_a_surface(on_service):
    findings = types_iovs.run(on_service(iovs="10"))
    assert findings.passed, findings.targets
    assert shown(findings, "IOVs") == [10, 100]
    assert [plot.title for plot in findings.plots][:2] == ["Response time, p50", "Frequency"]
    assert 8 < float(shown(findings, "rows per answer")[1].split()[0]) <= 10


@pytest.mark.slow
def test_endpoints_answer_alike(on_service):
    findings = endpoints.run(on_service(scenario="tiny", strategies="orm_max"))
    assert findings.passed, findings.targets
    assert shown(findings, "route") == ["payloadiovs", "payloadiovs_orm_max"]
    assert findings.figures["payloadiovs_orm_max: lookups/s"][0] > 0


@pytest.mark.slow
def test_growth_reads_back_what_it_inserted_and_leaves_no_tag(on_service):
    stage = on_service(block="80")
    findings = growth.run(stage)
    assert findings.passed, findings.targets
    assert shown(findings, "IOVs at its end") == [80, 80, 160, 160]
    assert shown(findings, "failed") == [0] * 4
    assert all(len(values) == 1 for values in findings.figures.values())
    assert growth.TAG not in [tag["name"] for tag in send(stage.url, "GET", "globalTags")]
    assert not [kind["name"] for kind in send(stage.url, "GET", "pt") if kind["name"] == blocks.type_of(0)]


def test_growth_leaves_somebody_elses_tag_alone(on_service):
    stage = on_service()
    send(stage.url, "POST", "gt", {"name": growth.TAG, "status": "unlocked"})
    try:
        with pytest.raises(ServiceError, match="there is a global tag load-growth already"):
            growth.run(stage)
        assert growth.TAG in [tag["name"] for tag in send(stage.url, "GET", "globalTags")]
    finally:
        send(stage.url, "DELETE", f"deleteGlobalTag/{growth.TAG}")


@pytest.mark.slow
def test_what_was_not_inserted_is_missed(on_service):
    load = Load(
        {"ReadBack": 1}, count=2, campaign_users=True, options={"jobs-per-user": 3, "numbers-from": 0, "global-tag": "tiny"}
    )  # fmt: skip
    run = on_service().load("nothing was inserted", load)
    assert list(run.recording.requests.outcomes) == [WRONG] * 6
    repeated = Repeated()
    repeated.add("point", run)
    assert not any(target.met for target in repeated.targets(["point"]) if target.name == "right answers")


@pytest.mark.slow
def test_a_generator_that_starts_slowly_does_not_stop_early(url, tmp_path):
    (tmp_path / "slow.py").write_text("import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass\n")
    load = Load({"ReconstructionJob": 1}, count=1, seconds=2, options={"global-tag": "tiny"})
    words = load.arguments(url, tmp_path)
    words[words.index("-f") + 1] += f",{tmp_path / 'slow.py'}"
    done = subprocess.run(
        [sys.executable, "-m", "locust", *words], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    recording = Recording.read(tmp_path)
    assert recording.end.max() > 1, done.stderr


def test_a_refused_request_is_one_error(url):
    with pytest.raises(ServiceError, match="GET gtPayloadLists/none: status 404"):
        send(url, "GET", "gtPayloadLists/none")
    assert send(url, "DELETE", "deleteGlobalTag/none", also=(404,))["code"]


def test_sized_tags_have_the_rows_that_their_names_say(stage):
    stage.seed("sized-2x30")
    assert scenario_of("sized-2x30").iovs == 60
    assert stage.database.value(GOOD_TAG, ("sized-2x30", 2)) == 60
    assert scenario_of("heavy-usage").iovs == 500_000
    with pytest.raises(KeyError):
        scenario_of("sized-2x")
    with pytest.raises(ServiceError, match="there is no scenario huge: the scenarios are tiny, "):
        stage.seed("huge")


def test_turns_alternate():
    assert list(in_turns("ab", 3)) == [(1, "a"), (1, "b"), (2, "b"), (2, "a"), (3, "a"), (3, "b")]


def recorded(seconds, rows, outcomes, cores=()):
    """Lookups that take `seconds` each, one after the other, and a list of tags that fails besides."""
    ends = numpy.cumsum(seconds)
    begins, count = ends - seconds, len(seconds) + 1
    return Recording(
        0.0, numpy.append(begins, 0), numpy.append(begins, 0), numpy.append(ends, 100),
        numpy.array(["Job"] * count), numpy.array(["lookup"] * (count - 1) + ["globalTags"]), numpy.array(["GET"] * count),
        numpy.array([200] * count), numpy.array([*outcomes, WRONG]), numpy.array([*rows, 3]), numpy.array([10] * count),
        {}, tuple(Sample(when, cpu, 0.0, 1, 1) for when, cpu in enumerate(cores)),
    )  # fmt: skip


def test_figures_are_of_lookups_alone_and_failures_of_all():
    told = Lookups.of(
        Run("one", recorded([0.1, 0.1, 0.1, 0.7, 1.0], [10, 20, 0, 10, 10], [OK, OK, WRONG, OK, OK], [0.2, 0.9]))
    )
    assert told.count == 5
    assert told.rate == pytest.approx(2.5)
    assert told.peak is None
    assert (told.p50, told.p95, told.p99) == pytest.approx((100, 1000, 1000))
    # The empty answer was a wrong one.
    assert told.rows == 12.5
    assert told.failed == 2
    assert told.cores == 0.9


def test_the_busiest_second_is_one_of_several():
    told = Lookups.of(Run("one", recorded([0.4, 0.4, 0.4, 0.4, 0.1, 0.1, 0.1, 0.9], [1] * 8, [OK] * 8)))
    assert told.peak == 5
    assert told.rate == pytest.approx(8 / 2.8)


def test_a_row_has_the_spread_of_the_repetitions():
    repeated = Repeated()
    repeated.add("a", Run("one", recorded([0.1, 0.1], [1, 1], [OK, OK])))
    repeated.add("a", Run("two", recorded([0.2, 0.2], [1, 1], [OK, OK])))
    cells = dict(zip(COLUMNS, repeated.cells("a"), strict=True))
    assert cells["lookups"] == 4
    assert cells["lookups/s"] == "7.50 (5.00–10.0)"
    assert cells["p50 ms"] == "150 (100–200)"
    assert cells["generator, cores"] is None
    assert [(one["point"], one["repetition"], one["count"]) for one in repeated.raw("point")] == [
        ("a", 1, 2),
        ("a", 2, 2),
    ]
    right, rows = repeated.targets(["a"])
    assert right.value == pytest.approx(4 / 6 * 100)
    assert not right.met
    assert rows.met


def test_no_rows_miss_the_target():
    repeated = Repeated()
    repeated.add("a", Run("one", recorded([0.1, 0.1], [0, 0], [OK, OK])))
    assert not repeated.targets(["a"])[1].met


# Axes for what is always more than nothing complain.
@pytest.mark.filterwarnings("ignore:Data has no positive values")
@pytest.mark.parametrize("module", [scenarios, threads, workers, types_iovs, endpoints])
def test_a_service_that_answers_nothing_is_reported(module):
    failed = recorded([], [], [])
    points = {
        scenarios: [("tiny", pattern) for pattern in scenarios.PATTERNS],
        threads: [1, 2], workers: [(1, 1), (1, 2)], types_iovs: [(1, 1), (2, 1)], endpoints: [endpoints.OWN, "other"],
    }  # fmt: skip
    rest = {
        scenarios: [("tiny",), 2, 3], threads: ["tiny", 10], workers: ["tiny", (1,), (1, 2)], types_iovs: [(1, 2), (1,)],
        endpoints: ["tiny"],
    }  # fmt: skip
    repeated = Repeated()
    for point in points[module]:
        repeated.add(point, Run(f"{point}", failed))
    findings = module._findings(repeated, *rest[module])
    assert [target.met for target in findings.targets] == [False, False]
    assert findings.plots


def test_content_is_what_a_naive_model_says():
    count = 60
    content = blocks.Content(count)
    assert content.at(0, 0) == [[*row(0), 0, 0, *END_OF_TIME, "1"]]
    for moment in [(2**31, 0), *(blocks.start_of(number) for number in range(count)), (10**9, 5)]:
        expected = {}
        for number in sorted(range(count), key=blocks.start_of):
            if blocks.start_of(number) <= moment:
                expected[blocks.type_of(number)] = [*row(number), *blocks.start_of(number), *END_OF_TIME, "1"]
        assert content.at(*moment) == [expected[kind] for kind in sorted(expected)]


def row(number):
    """What a row of an answer begins with, as it was inserted."""
    sent = blocks.row_to_insert("any", number)
    return [sent[name] for name in ("payload_type", "payload_url", "checksum", "size")]


def test_numbers_have_places_of_their_own_everywhere():
    majors = [blocks.start_of(number)[0] for number in range(1000)]
    gaps = [after - before for before, after in itertools.pairwise(sorted(majors))]
    assert min(gaps) > 0
    assert max(gaps) < 5 * blocks.MOMENTS / 1000
    assert json.loads(json.dumps(blocks.row_to_insert("any", 7)))["since"] == list(blocks.start_of(7))
