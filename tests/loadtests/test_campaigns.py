"""Campaigns: their files, and whole runs against a service."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pandas
import pytest

from cdb.env import ROOT
from loadtests import campaign
from tests.programs import needs

FILES = sorted(campaign.DIRECTORY.glob("*.toml"))


def run(*words, directory):
    command = [sys.executable, "-m", "loadtests", *words, "--directory", directory]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_campaign_can_be_read_and_asks_a_question(file):
    for quick in (False, True):
        found = campaign.load(file, quick=quick)
        assert found.question.endswith("?") and found.scenarios
        columns = {"step", "repetition", *found.steps[0].point, *campaign.HOLDS, "p50"}
        assert set(found.plot.values()) <= columns


@pytest.mark.xdist_group("campaigns")
@needs("nginx")
def test_a_campaign_runs_and_writes_a_report(tmp_path, open_directory):
    done = run("smoke", "--quick", directory=open_directory)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 steps passed, with --quick" in done.stdout
    [report] = open_directory.glob("smoke-*/report.html")
    assert report.read_text().count("<img") >= 1
    figures = pandas.read_csv(report.with_name("figures.csv"))
    assert len(figures) == 1 and (figures["success"] > 50).all() and (figures["cpu.granian"] > 0).all()


@pytest.fixture
def open_directory():
    """A directory that the account of PostgreSQL can read, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="cdb-load-", ignore_cleanup_errors=True) as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["smoke", "--host", "http://127.0.0.1:9"], "load: cannot connect to http://127.0.0.1:9: "),
        (["nothing"], "load: there is no campaign nothing: the campaigns are endurance, faults, "),
    ],
)
def test_what_cannot_be_run_is_one_line(tmp_path, words, message):
    done = run(*words, directory=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith(message) and done.stderr.count("\n") == 1
