"""The command `python -m loadtests`: its options, a campaign that fails, and one that succeeds."""

import json
import re
from pathlib import Path

import pytest

from loadtests import __main__ as command
from loadtests import client, metrics
from loadtests.campaigns.stage import Stage
from loadtests.recording.outcome import NO_RESPONSE, OK, OVERLOADED, WRONG
from loadtests.reporting import campaign
from loadtests.reporting.result import Findings, Run, Target
from loadtests.service import ServiceError, Settings, free_port, run_command
from tests.loadtests.harness_runs import fake
from tests.loadtests.recorded import read, request, steady, written


@pytest.fixture
def reachable(monkeypatch):
    """Make every address of --host reachable."""
    monkeypatch.setattr(client, "check_reachable", lambda _: None)


@pytest.mark.parametrize("name", command.CAMPAIGNS)
def test_campaign_rejects_unreachable_deployment(tmp_path, monkeypatch, capsys, name):
    monkeypatch.setattr(command, "prepare_process", lambda: None)
    url, directory = f"http://127.0.0.1:{free_port()}", tmp_path / "load"
    assert command.main(["campaign", name, "--quick", "--host", url, "--directory", str(directory)]) == 1
    told = capsys.readouterr()
    assert told.err == f"load: cannot connect to {url}: [Errno 111] Connection refused\n"
    assert told.out == ""
    assert not directory.exists()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("error --status 404", "does not respond as a cdb service: GET gtstatus: status 404: "),
        ("html", "does not respond as a cdb service: GET gtstatus is not JSON: <html>"),
        ("silent", ": timed out"),
        ("close", ": Remote end closed connection without response"),
    ],
)
def test_campaign_rejects_server_that_is_not_cdb_in_one_line(tmp_path, monkeypatch, fault, said):
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.5)
    with fake(fault, tmp_path / "fake") as (url, _), pytest.raises(ServiceError) as raised:
        client.check_reachable(url)
    assert url in str(raised.value)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (KeyboardInterrupt(), 130, "Interrupted. "),
        (ServiceError("locust failed (2): no port"), 1, "The campaign failed: locust failed (2): no port. "),
        (OSError("HTTP Error 504"), 1, "The campaign failed: HTTP Error 504. "),
    ],
)
def test_interrupted_campaign_reports_complete_runs(tmp_path, monkeypatch, capsys, error, code, expected):
    """With a remote deployment, no local database is started."""

    def run(stage):
        assert (stage.options.offset, stage.url) == ([50, 100], "http://127.0.0.1:9")
        stage.runs.append(Run("first", read(tmp_path / "run", steady(1, seconds=1)), detailed=False))
        raise error

    def add_options(parser):
        parser.add_argument("--offset", nargs="+", type=int)

    monkeypatch.setitem(command.CAMPAIGNS, "smoke", command.Campaign("Short", "Is it?", add_options, run))
    monkeypatch.setattr(command, "prepare_process", lambda: None)
    monkeypatch.setattr(metrics, "read", lambda _: {'cdb_build_info{django="5",version="1.2"}': 1.0})
    arguments = ["smoke", "--host", "http://127.0.0.1:9/", "--directory", str(tmp_path), "--offset", "50", "100"]
    assert command.main(["campaign", *arguments]) == code
    told = capsys.readouterr().out
    assert f"{expected}Complete runs, which are not evaluated: 1. Failed." in told
    path = Path(told.splitlines()[-1])
    assert "first" in path.read_text()
    assert "<p>Is it?</p>" in path.read_text()
    assert 'django="5", version="1.2"' in (path.parent / "report.md").read_text()
    assert "<td>PostgreSQL" not in path.read_text()
    assert not (tmp_path / "data" / "postgres").exists()
    assert json.loads((path.parent / campaign.FILE).read_text())["facts"]["offset"] == "50 100"


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize(("outcome", "code"), [(OK, 0), (OVERLOADED, 0), (WRONG, 1), (NO_RESPONSE, 1)])
def test_quick_campaign_gives_no_verdict_and_fails_with_its_requests(tmp_path, monkeypatch, capsys, outcome, code):
    def run(_):
        rows = [request(0, 20), request(1, 20, outcome=outcome)]
        targets = [Target("fast", 2, 1, at_most=True), Target("right", 2, 1, at_most=False)]
        return Findings(summary="It was quick", targets=targets, runs=[Run("one", read(tmp_path / "run", rows))])

    monkeypatch.setitem(command.CAMPAIGNS, "smoke", command.Campaign("Quick", "Is it?", lambda _: None, run))
    monkeypatch.setattr(command, "prepare_process", lambda: None)
    words = ["smoke", "--quick", "--host", "http://127.0.0.1:9", "--directory", str(tmp_path)]
    assert command.main(["campaign", *words]) == code
    told = capsys.readouterr()
    said, path = told.out.splitlines()
    assert said == "It was quick. Not judged: a run with --quick is too small for verdicts."
    assert ("requests without the correct response: 1 (" in told.err) is bool(code)
    assert not re.search(r'class="[^"]*\b(met|missed)\b|>(met|missed)<', Path(path).read_text())
    document = json.loads((Path(path).parent / campaign.FILE).read_text())
    assert (document["passed"], [target["met"] for target in document["targets"]]) == (None, [None, None])


def test_report_command_writes_page_of_recording(tmp_path, capsys):
    directory = written(tmp_path / "recording", steady(1, seconds=3))
    assert command.main(["report", str(directory)]) == 0
    path = directory / "report.html"
    assert capsys.readouterr().out == f"{path}\n"
    assert "100.00 % of 300 requests got the correct response" in path.read_text()
    assert command.main(["report", str(tmp_path / "nowhere")]) == 1
    assert capsys.readouterr().err == f"load: no request was recorded in {tmp_path / 'nowhere'}\n"


def test_campaign_help_has_question_and_options(capsys):
    for name, one in command.CAMPAIGNS.items():
        with pytest.raises(SystemExit) as ended:
            command.main(["campaign", name, "--help"])
        assert ended.value.code == 0
        told = " ".join(capsys.readouterr().out.split())
        assert one.question.split()[0] in told
        assert "--host URL" in told


@pytest.mark.parametrize(
    "host", ["cdb.example.org", "ftp://cdb.example.org", "http://", "https://cdb.example.org/?page=1"]
)
def test_host_option_rejects_invalid_address(capsys, host):
    with pytest.raises(SystemExit) as ended:
        command.main(["campaign", "smoke", "--host", host])
    assert ended.value.code == 2
    assert f"--host: must be an address such as https://cdb.example.org (got {host})" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["saturation", "--factor", "1"], "error: --factor must be above 1 (got 1)"),
        (["saturation", "--start", "fast"], "error: --start must be a number (got fast)"),
        (["peak", "--together", "0"], "error: --together must be at least 1 (got 0)"),
        (["hammer", "--scale", "inf"], "error: --scale must be a number (got inf)"),
    ],
)
def test_campaign_options_reject_invalid_numbers(capsys, arguments, said):
    with pytest.raises(SystemExit) as ended:
        command.main(["campaign", *arguments])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize("name", ["smoke", "hammer", "saturation", "peak"])
def test_campaign_passes_content_options_to_locust(tmp_path, monkeypatch, name):
    class Enough(Exception):  # noqa: N818 -- no error
        pass

    def load(self, label, load, **_):
        loads.append(load.arguments(self.url, tmp_path))
        raise Enough

    loads = []
    monkeypatch.setattr(Stage, "load", load)
    monkeypatch.setattr(command, "prepare_process", lambda: None)
    words = ["--scenario", "none", "--global-tag", "reco-2026", "--layout", "realistic", "--iov-mode", "discrete"]
    directory = ["--host", "http://127.0.0.1:9", "--directory", str(tmp_path)]
    with pytest.raises(Enough):
        command.main(["campaign", name, *directory, *words])
    [told] = loads
    given = {
        word: told[place + 1] for place, word in enumerate(told) if word.startswith("--") and place + 1 < len(told)
    }
    assert [given[word] for word in words[::2]] == words[1::2]


def test_load_command_starts_service_and_writes_report(needs_packages, open_directory):
    words = ("campaign", "smoke", "--quick", "--directory", str(open_directory))
    done = run_command(Settings(open_directory, {}), "-m", "loadtests", *words)
    assert (done.code, "Not judged: a run with --quick is too small" in done.output) == (0, True), done.output
    report = Path(done.output.strip().splitlines()[-1])
    assert report.name == "report.html"
    assert "Does every kind of client get correct responses?" in report.read_text()
