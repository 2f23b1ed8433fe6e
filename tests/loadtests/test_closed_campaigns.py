"""The campaigns with closed loops in their smallest size, on one service."""

import subprocess
import sys

import pytest

from cdb.env import ROOT
from loadtests.campaigns import closed, growth
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.campaigns.sweep import Sweep, figures_of
from loadtests.client import Client
from loadtests.content import blocks
from loadtests.content.tags import scenario_of, sized_tag
from loadtests.harness import GOOD_TAG
from loadtests.recording.outcome import WRONG
from loadtests.recording.reading import Recording
from loadtests.service import ServiceError, running
from tests.loadtests.options import options

# They share one service.
pytestmark = pytest.mark.xdist_group("closed-campaigns")


@pytest.fixture(scope="module")
def stage(open_directory):
    """A stage whose database has the tags of quick campaigns."""
    stage = Stage(open_directory / "data", quick=True)
    stage.data.mkdir()
    with stage.running_database():
        stage.seed("tiny", "tiny-moderate", *(sized_tag("sized", types, 10) for types in closed.QUICK_TYPES))
        yield stage


@pytest.fixture(scope="module")
def url(stage):
    with running(stage.settings, workers=2) as service:
        yield service.host


@pytest.fixture
def on_service(stage, url, tmp_path):
    """A function that creates the stage of a campaign on the running service, with options."""

    def on_service(campaign, *words):
        own = options(campaign, *words, quick=True)
        return Stage(stage.data, output=tmp_path, host=url, quick=True, options=own)

    return on_service


def shown(findings, title):
    """The cells of one column of the first table."""
    place = findings.tables[0].columns.index(title)
    return [row[place] for row in findings.tables[0].rows]


def test_scenarios_campaign_counts_rows_of_each_pattern(on_service):
    findings = closed.scenarios(on_service("scenarios", "--scenarios", "tiny"))
    assert findings.passed, findings.targets
    assert shown(findings, "moments") == ["first", "random", "last"]
    assert shown(findings, "rows per response")[::2] == ["0 (0–0)", "10.0 (10.0–10.0)"]
    assert shown(findings, "remark") == ["nothing is valid yet", "", ""]
    threads, calls, repetitions = closed.QUICK_SCENARIOS_SIZE
    assert shown(findings, "lookups") == [threads * calls] * 3
    assert len(findings.figures["tiny, random: lookups/s"]) == repetitions
    assert len(findings.plots) == 3


def test_threads_campaign_shares_calls_between_threads(on_service, monkeypatch):
    monkeypatch.setattr(closed, "QUICK_THREADS", (1, 8))
    findings = closed.threads(on_service("threads"))
    assert findings.passed, findings.targets
    assert shown(findings, "threads") == [1, 8]
    assert shown(findings, "lookups") == [closed.QUICK_CALLS] * 2
    assert findings.figures["8 threads: p99 ms"][0] > 0


def test_workers_campaign_starts_service_for_each_number_of_processes(stage, tmp_path, monkeypatch):
    monkeypatch.setattr(closed, "QUICK_CLIENTS", (4,))
    findings = closed.workers(Stage(stage.data, output=tmp_path, quick=True, options=options("workers", quick=True)))
    assert findings.passed, findings.targets
    assert shown(findings, "processes") == [1, 2]
    assert shown(findings, "lookups") == [4 * closed.QUICK_LOOKUPS] * 2


def test_workers_campaign_refuses_remote_deployment(on_service):
    with pytest.raises(ServiceError, match="cannot be combined with --host"):
        closed.workers(on_service("workers"))


def test_types_iovs_campaign_measures_each_size(on_service):
    findings = closed.types_iovs(on_service("types-iovs", "--iovs", "10"))
    assert findings.passed, findings.targets
    assert shown(findings, "IOVs") == [10, 100]
    assert [plot.title for plot in findings.plots] == ["Response time, p50", "Frequency"]
    assert 8 < float(shown(findings, "rows per response")[1].split()[0]) <= 10


def test_endpoints_campaign_gets_correct_responses_from_each_route(on_service):
    findings = closed.endpoints(
        on_service("endpoints", "--scenario", "tiny", "tiny-moderate", "--strategies", "orm_max")
    )
    assert findings.passed, findings.targets
    assert shown(findings, "scenario") == ["tiny", "tiny", "tiny-moderate", "tiny-moderate"]
    assert shown(findings, "route") == ["payloadiovs", "payloadiovs_orm_max"] * 2
    assert findings.figures["tiny, payloadiovs_orm_max: lookups/s"][0] > 0


def test_endpoints_campaign_looks_up_the_given_pattern(on_service):
    given = ("--scenario", "tiny", "--pattern", "first", "--strategies", "orm_max")
    findings = closed.endpoints(on_service("endpoints", *given))
    # Nothing is valid at the first moment.
    assert [target.name for target in findings.targets] == ["correct responses"] and findings.passed
    assert shown(findings, "rows per response") == ["0 (0–0)"] * 2


def test_growth_campaign_reads_its_inserts_and_deletes_its_tag(on_service):
    stage = on_service("growth", "--block", "80")
    findings = growth.run(stage)
    assert findings.passed, findings.targets
    assert shown(findings, "IOVs at its end") == [80, 80, 160, 160]
    assert shown(findings, "failed") == [0] * 4
    assert all(len(values) == 1 for values in findings.figures.values())
    assert growth.TAG not in [tag["name"] for tag in stage.client().call("GET", "globalTags").json]
    assert not [kind["name"] for kind in stage.client().call("GET", "pt").json if kind["name"] == blocks.type_of(0)]


def test_growth_campaign_keeps_tag_of_another_client(on_service):
    stage = on_service("growth")
    stage.client().call("POST", "gt", {"name": growth.TAG, "status": "unlocked"})
    try:
        with pytest.raises(ServiceError, match="the global tag load-growth already exists"):
            growth.run(stage)
        assert growth.TAG in [tag["name"] for tag in stage.client().call("GET", "globalTags").json]
    finally:
        stage.client().call("DELETE", f"deleteGlobalTag/{growth.TAG}")


def test_read_back_user_detects_missing_inserts(on_service):
    load = Load({"ReadBack": 1}, count=2, options={"jobs-per-user": 3, "numbers-from": 0, "global-tag": "tiny"})
    run = on_service("growth").load("nothing was inserted", load)
    assert list(run.recording.requests.outcomes) == [WRONG] * 6
    sweep = Sweep(("name",))
    sweep.add(("point",), run, figures_of(run))
    findings = sweep.findings("", sweep.table(""), [], [], figures=())
    assert not any(target.met for target in findings.targets if target.name == "correct responses")


def test_slowly_started_generator_uses_whole_run_time(url, tmp_path):
    (tmp_path / "slow.py").write_text("import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass\n")
    load = Load({"ReconstructionJob": 1}, count=1, seconds=2, options={"global-tag": "tiny"})
    words = load.arguments(url, tmp_path)
    words[words.index("-f") + 1] += f",{tmp_path / 'slow.py'}"
    done = subprocess.run(
        [sys.executable, "-m", "locust", *words], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    recording = Recording.read(tmp_path)
    assert recording.end.max() > 1, done.stderr


def test_client_call_raises_for_unexpected_status(url):
    with pytest.raises(ServiceError, match="GET gtPayloadLists/none: status 404"):
        Client(url).call("GET", "gtPayloadLists/none")
    assert Client(url).call("DELETE", "deleteGlobalTag/none", also=(404,)).json["code"]


def test_seeded_sized_tags_have_rows_of_their_names(stage):
    stage.seed("sized-2x30")
    assert scenario_of("sized-2x30").iovs == 60
    assert stage.database.value(GOOD_TAG, ("sized-2x30", 2)) == 60
    assert scenario_of("heavy-usage").iovs == 500_000
    with pytest.raises(KeyError):
        scenario_of("sized-2x")
    with pytest.raises(ServiceError, match="there is no scenario huge: the scenarios are tiny, "):
        stage.seed("huge")
