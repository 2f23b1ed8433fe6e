"""The command of the bench in its smallest size."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

from cdb.env import ROOT
from loadtests.bench.__main__ import PARTS, _parser, main
from loadtests.service import becomes_true
from tests.programs import require


def start(directory, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CDB_", "DATABASE_URL"))}
    return subprocess.Popen(
        [sys.executable, "-m", "loadtests.bench", "--tiny", "--directory", str(directory), *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def left_over(directory):
    """Processes whose working directory or settings name the directory."""
    found = []
    for process in psutil.process_iter():
        try:
            told = process.environ().get("CDB_DATA_DIR", "")
            if process.status() != psutil.STATUS_ZOMBIE and str(directory) in (told + process.cwd()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def children_of(process):
    """The command lines of a process's children, without those that end meanwhile."""
    commands = []
    for child in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            commands.append(" ".join(child.cmdline()))
    return commands


@pytest.fixture
def directory(open_directory, request):
    require("wrk")
    return open_directory / request.node.name


def test_bench_writes_report_of_one_part_and_leaves_no_process(directory):
    process = start(directory, "--only", "floor")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    [report] = directory.glob("*/report.html")
    assert str(report) in said.splitlines()[-1]
    assert sorted(file.name for file in report.parent.iterdir()) == [
        "floor.csv",
        "plots",
        "report.html",
        "report.md",
        "tables",
    ]
    plots = sorted(file.name for file in (report.parent / "plots").iterdir())
    assert "floor-1-tiny-responses-a-second-medians-of-rounds.png" in plots
    assert "floor-1-tiny-responses-a-second-medians-of-rounds.svg" in plots
    assert "HTTP ÷ floor (tiny)" in report.read_text()
    assert "Not judged: a run with --tiny is too small for verdicts." in report.read_text()
    assert not re.search(r">(met|missed)<", report.read_text())
    assert "This part failed" not in report.read_text()
    assert left_over(directory) == []


@pytest.mark.parametrize(
    ("child", "number"),
    # While the database starts; when the service is up and under load.
    [("initdb", signal.SIGTERM), (" http://127.0.0.1", signal.SIGINT), (" http://127.0.0.1", signal.SIGTERM)],
)
def test_interrupted_bench_leaves_no_process(directory, child, number):
    process = start(directory, "--only", "floor")
    deadline = time.monotonic() + 60
    while not any(child in command for command in children_of(process)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    # A child of a killed initdb ends when it reads the end of its input.
    assert becomes_true(lambda: left_over(directory) == [], 10), left_over(directory)


def test_bench_list_names_all_parts(capsys):
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(PARTS)
    assert all(len(line.split()) > 3 for line in lines)


def test_docs_have_every_part_and_option_of_bench():
    text = (ROOT / "docs" / "benchmark-parts.md").read_text()
    assert all(f"| `{name}` |" in text for name in PARTS)
    options = {option for action in _parser()._actions for option in action.option_strings} - {"-h", "--help"}
    assert all(f"| `{option}" in text for option in options)


def test_bench_reports_missing_program_in_one_line(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert main(["--quick"]) == 1
    assert capsys.readouterr().err == "bench: wrk was not found. On Debian or Ubuntu: apt-get install wrk\n"
