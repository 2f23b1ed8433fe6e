"""The report of a campaign, from recordings whose figures are known."""

import csv
import json
import os
import random
import re

import pytest

from loadtests.recording.outcome import NOT_SENT
from loadtests.recording.reading import Recording
from loadtests.reporting import campaign, plots, runs, summaries
from loadtests.reporting.result import Findings, Run, Signals, Table, Target
from tests.loadtests.recorded import START, job, read, request, samples, steady, written
from tests.loadtests.test_report import Checker

pytestmark = pytest.mark.xdist_group("campaign-report")

CLOSED = {"users": "10 (ReconstructionJob)"}


def a_run(directory, requests, of_generator=(), **more):
    return Run("a run", read(directory / "run", requests, of_generator), **more)


def mixed():
    """A thousand lookups of 1, 2, …, 1,000 ms, ten a second, of which six failed; two jobs that were not started."""
    times = random.Random(1).sample(range(1, 1001), 1000)
    outcomes = {100: "504", 200: "504", 300: "504", 400: "no response", 500: "no response", 600: "wrong response"}
    requests = [
        request(place / 10, time, outcome=outcomes.get(place, "success"), rows=place % 3)
        for place, time in enumerate(times)
    ]
    requests += [job(place / 10, time) for place, time in enumerate(times)]
    return [*requests, job(7, 0, NOT_SENT), job(8, 0, NOT_SENT)]


@pytest.fixture(scope="module")
def written_report(tmp_path_factory):
    directory = tmp_path_factory.mktemp("report")
    rows = [
        {
            "time": START + second, "cpu.gunicorn": 1.0, "cpu.postgres": 0.5,
            "cpu.machine": 1.7, "memory.gunicorn": 2e8 + 1e5 * second, "memory.machine": 9e9,
            "files.nginx": 40, "threads.gunicorn": 24,
            "connections.active": second % 7, "connections.idle": 4, "waits.ClientRead": 3, "in_progress.lookups": second % 5,
            "errors.overloaded": second % 2, "disk.write": 2e6,
        }
        for second in range(100)
    ]  # fmt: skip
    whole = a_run(directory, mixed(), samples(100), signals=Signals(rows), settings=CLOSED)
    short = Run("short one", read(directory / "short", steady(1, seconds=5)), detailed=False)
    findings = Findings(
        summary="99.20 % right, at 9.91 requests a second",
        question="Is <this> a question?",
        targets=[
            Target("correct", 99.2, 99, at_most=False, unit="%"),
            Target("p99", 990, 500, at_most=True, unit="ms"),
        ],
        tables=[Table("Own table", ("threads", "rate"), [(1, 100.0), (50, 700.5)])],
        plots=[
            plots.scaling(
                "Threads", {"tiny": [(1, [100, 90, 95]), (50, [700, 800]), (500, [])]}, x="threads", y="responses/s"
            ),
        ],
        runs=[whole, short],
        notes=["A note."],
        figures={"tiny: responses/s": [100.0, 90.0], "p99: ms": [990.0]},
        raw=[{"threads": 1, "rate": 100.0}],
    )
    facts = Table("Environment", ("", ""), [("cores", "2")])
    return campaign.write(directory / "out", "threads", "Load test: Threads", findings, facts)


def test_summary_has_known_percentiles_and_rates(tmp_path):
    found = summaries.summary_of(a_run(tmp_path, mixed()).recording)
    expected = {"p50_ms": 500, "p90_ms": 900, "p95_ms": 950, "p99_ms": 990, "p999_ms": 999, "max_ms": 1000}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=0.001), name
    assert found["requests"] == found["jobs"] == 1000
    assert found["mean_rate"] == pytest.approx(1000 / found["seconds"])
    assert 99.9 < found["seconds"] <= 100.9
    assert found["ok_share"] == 994 / 1002
    assert found["failures"] == {"wrong response": 1, "no response": 2, "504": 3, NOT_SENT: 2}
    assert found["bytes_per_response"] == 1000


def test_summary_counts_most_requests_that_ended_within_one_second(tmp_path):
    regular = [request(second + 0.1 * place, 10) for second in range(10) for place in range(5)]
    # Seven requests are due in second 3, and their responses arrive in second 4.
    found = summaries.summary_of(a_run(tmp_path, [*regular, *(request(3.9, 150) for _ in range(7))]).recording)
    assert found["peak_rate"] == 12
    assert found["seconds"] == pytest.approx(9.41, abs=1e-5)
    assert found["mean_rate"] == pytest.approx(57 / 9.41)


def test_summary_of_jobs_that_were_not_started_has_no_times(tmp_path):
    run = a_run(tmp_path, [job(0, 0, NOT_SENT)])
    found = summaries.summary_of(run.recording)
    assert (found["requests"], found["mean_rate"], found["p50_ms"], found["ok_share"]) == (0, None, None, 0.0)
    assert "1 jobs were not started" in " ".join(runs.result_of(run).notes)


def test_campaign_page_is_complete_and_self_contained(written_report):
    page = written_report.read_text()
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert [address for address in checker.fetched if not address.startswith("data:")] == []
    assert not re.search(r"url\((?!#)|@import|<script|<link", page)
    assert checker.seen.count("svg") == 1 + 4
    text = " ".join(checker.text)
    for expected in (
        "99.20 % right, at 9.91 requests a second. Failed.",
        "Is <this> a question?",
        "details of <504>",
        "details of <no response>",
        "details of <wrong response>",
        "short one",
        "A note.",
        "coordinated omission",
    ):
        assert expected in text


def test_campaign_markdown_has_same_content_as_page(written_report):
    markdown = (written_report.parent / "report.md").read_text()
    checker = Checker()
    checker.feed(written_report.read_text())
    text = " ".join(checker.text)
    for line in markdown.splitlines():
        if line.startswith("|") and "---" not in line:
            for cell in line.strip("| ").split(" | "):
                assert cell in text
        elif line and not line.startswith(("!", "| ")):
            assert line.strip("#* ") in text
    for file in re.findall(r"\]\((.*?)\)", markdown):
        assert (written_report.parent / file).exists()


def test_campaign_report_writes_plots_and_tables_to_files(written_report):
    directory = written_report.parent
    kinds = [file.suffix for file in (directory / "plots").iterdir()]
    assert (kinds.count(".png"), kinds.count(".svg"), len(kinds)) == (5, 5, 10)
    with (directory / "tables" / "threads-1-own-table.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["threads", "rate"], ["1", "100.0"], ["50", "700.5"]]
    with (directory / "figures.csv").open(newline="") as file:
        assert [tuple(row.values()) for row in csv.DictReader(file)] == [
            ("tiny: responses/s", "1", "100.0"),
            ("tiny: responses/s", "2", "90.0"),
            ("p99: ms", "1", "990.0"),
        ]
    assert (directory / "threads.csv").exists()


def test_findings_file_has_values_of_campaign(written_report):
    found = json.loads((written_report.parent / campaign.FILE).read_text())
    assert (found["campaign"], found["passed"], found["facts"]) == ("threads", False, {"cores": "2"})
    assert found["figures"]["tiny: responses/s"] == [100.0, 90.0]
    assert found["failed"]["a run, failed: %"] == [8, 1002]
    assert found["measured"]["a run, lookup, p99: ms"]["value"] == pytest.approx(990, abs=0.001)
    rate, median = (found["measured"][f"a run, lookup{end}"] for end in (": requests/s", ", p50: ms"))
    assert sum(rate["blocks"]) / len(rate["blocks"]) == pytest.approx(rate["value"])
    assert median["blocks"][7] == pytest.approx(500, abs=250)
    assert found["measured"]["short one, lookup, p50: ms"]["blocks"] == []


@pytest.mark.parametrize(
    ("cpu", "lag", "late", "expected"),
    [
        (
            0.41,
            8,
            0.012,
            "The generator was not the bottleneck: at most 0.41 of a core by each process, latest start 12.0 ms",
        ),
        (0.97, 8, 0, "may have been the bottleneck: a process used 0.97 of a core"),
        (0.41, 500, 0, "may have been the bottleneck: its event loop was blocked for 500 ms"),
        (0.41, 8, 0.3, "may have been the bottleneck: one start in a hundred was 300 ms late"),
    ],
)
def test_report_says_whether_generator_was_bottleneck(tmp_path, cpu, lag, late, expected):
    run = a_run(tmp_path, [request(place, 400, late=late) for place in range(5)], samples(5, cpu, lag))
    assert expected in runs.generator_verdict(run.recording)


def test_report_compares_counts_of_clients_and_service(tmp_path):
    recording = read(tmp_path / "run", [request(place / 100, 12) for place in range(1000)])
    route = 'route="/payloadiovs/"'
    counters = {
        f'cdb_requests_total{{method="GET",{route},status="200"}}': 400.0,
        'cdb_requests_total{method="GET",route="/health/ready",status="200"}': 5000.0,
        'cdb_requests_total{method="GET",route="/metrics",status="200"}': 800.0,
        f"cdb_request_duration_seconds_sum{{{route}}}": 1.2,
        f"cdb_request_duration_seconds_count{{{route}}}": 400.0,
        # Including two requests for each reading of /metrics.
        "cdb_nginx_requests_total": 2603.0,
    }
    _, _, counts, times = runs.notes_of(Run("cached", recording, counters=counters))
    assert "1,000 responses and nginx counted 1,003 requests, of which 400 reached the application" in counts
    assert counts.endswith("The two sides agree.")
    assert (
        "a client waited 12.0 ms, and the application worked for 3.00 ms: most of the time was spent outside" in times
    )
    del counters["cdb_nginx_requests_total"]
    _, _, counts, _ = runs.notes_of(Run("lost", recording, counters=counters))
    assert counts.startswith("Warning: the clients counted 1,000 responses and the application counted 400")


def test_report_warns_of_empty_responses(tmp_path):
    empty = [request(place, 5, rows=0) for place in range(5)]
    assert "Warning: all 5 responses to lookup were empty: these figures are of empty responses." in (
        runs.notes_of(a_run(tmp_path, [*empty, request(1, 5, name="globalTags", rows=3)]))
    )


def test_plot_of_many_requests_is_small(tmp_path):
    result = runs.result_of(a_run(tmp_path, steady(1, rate=1000, seconds=20)))
    assert sum(len(plot.svg) for plot in result.plots) < 1_000_000


def test_recording_of_killed_process_is_read_without_its_incomplete_row(tmp_path):
    directory = written(tmp_path / "run", [request(1, 5, outcome="504"), request(3, 5)])
    text = (directory / "requests-host-1.csv").read_text()
    first = written(tmp_path / "other", [request(0, 5), request(2, 5, outcome="504")]) / "requests-host-1.csv"
    (directory / "requests-host-2.csv").write_text(first.read_text() + text.splitlines()[2][:30])
    recording = Recording.read(directory)
    assert recording.due.tolist() == [0, 1, 2, 3]
    assert recording.statuses.tolist() == [200, 504, 504, 200]
    assert recording.origin == START
    assert recording.examples == {"504": ("lookup", "details of <504>")}


def test_recordings_of_two_runs_in_one_directory_are_rejected(tmp_path):
    directory = written(tmp_path / "run", [request(1, 5), request(50, 5)])
    written(tmp_path / "other", [request(40, 5)])
    (tmp_path / "other" / "requests-host-1.csv").rename(directory / "requests-host-2.csv")
    ended = directory / "complete-host-1.csv"
    ended.touch()
    os.utime(ended, (START + 51, START + 51))
    assert len(Recording.read(directory)) == 3
    os.utime(ended, (START + 30, START + 30))
    with pytest.raises(ValueError, match="has recordings of several runs"):
        Recording.read(directory)
