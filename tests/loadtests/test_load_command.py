"""`python -m loadtests`, as far as it needs no load."""

import json
from pathlib import Path

import pytest

from loadtests import __main__ as command
from loadtests.campaigns.findings import Run
from loadtests.reporting import campaign
from loadtests.service import ServiceError
from tests.loadtests.recorded import read, steady, written


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (KeyboardInterrupt(), 130, "Interrupted. 1 runs are complete"),
        (ServiceError("locust failed (2): no port"), 1, "The campaign failed: locust failed (2): no port. 1 runs are complete"),
        (OSError("HTTP Error 504"), 1, "The campaign failed: HTTP Error 504. 1 runs are complete"),
    ],
)  # fmt: skip
def test_what_is_complete_is_reported_if_a_campaign_does_not_end(tmp_path, monkeypatch, capsys, error, code, expected):
    """On somebody else's deployment, for which no database of ours is started."""

    class Campaign:
        TITLE = "Short"

        @staticmethod
        def run(stage):
            assert (stage.options, stage.url) == ({"offset": "50 100"}, "http://127.0.0.1:9")
            stage.runs.append(Run("first", read(tmp_path / "run", steady(1, seconds=1)), detailed=False))
            raise error

        @staticmethod
        def add_options(parser):
            parser.add_argument("--offset", nargs="+", type=int)
            parser.add_argument("--absent")

    monkeypatch.setitem(command.CAMPAIGNS, "smoke", Campaign)
    monkeypatch.setattr(command, "prepare_process", lambda: None)
    arguments = ["smoke", "--host", "http://127.0.0.1:9/", "--directory", str(tmp_path), "--offset", "50", "100"]
    assert command.main(["campaign", *arguments]) == code
    told = capsys.readouterr().out
    assert expected in told
    path = Path(told.splitlines()[-1])
    assert "first" in path.read_text()
    assert "PostgreSQL" not in path.read_text()
    assert not (tmp_path / "data" / "postgres").exists()
    assert json.loads((path.parent / campaign.FILE).read_text())["facts"]["offset"] == "50 100"


def test_the_page_of_a_recording(tmp_path, capsys):
    directory = written(tmp_path / "recording", steady(1, seconds=3))
    assert command.main(["report", str(directory)]) == 0
    path = directory / "report.html"
    assert capsys.readouterr().out == f"{path}\n"
    assert "100.00 % of 300 requests were answered rightly" in path.read_text()
    assert command.main(["report", str(tmp_path / "nowhere")]) == 1
    assert capsys.readouterr().err == f"load: no request was recorded in {tmp_path / 'nowhere'}\n"


def test_the_help_of_a_campaign_says_its_question_and_its_options(capsys):
    for name, module in command.CAMPAIGNS.items():
        with pytest.raises(SystemExit) as ended:
            command.main(["campaign", name, "--help"])
        assert ended.value.code == 0
        told = " ".join(capsys.readouterr().out.split())
        assert module.__doc__.strip().splitlines()[0].split()[0] in told
        assert "--host URL" in told


@pytest.mark.parametrize(
    "host", ["cdb.example.org", "ftp://cdb.example.org", "http://", "https://cdb.example.org/?page=1"]
)
def test_what_is_no_address_of_a_deployment(capsys, host):
    with pytest.raises(SystemExit) as ended:
        command.main(["campaign", "smoke", "--host", host])
    assert ended.value.code == 2
    assert f"{host} is no address such as https://" in capsys.readouterr().err
