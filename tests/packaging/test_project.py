"""The project itself: its packages, shell scripts, and the messages of deploy/setup.sh."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from cdb.env import ROOT
from tests.programs import needs

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_each_pinned_package_runs_on_the_oldest_python():
    assert PROJECT["requires-python"] == ">=3.11"
    # That of Debian 12; later packages sometimes need a later patch release.
    oldest = "3.11.2"
    pinned = re.findall(r"^[^\s#].*?==[^\s]+", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
    names = [Requirement(line).name for line in pinned]
    assert len(names) > 100
    needs = {name: importlib.metadata.metadata(name)["Requires-Python"] or "" for name in names}
    assert [name for name, python in needs.items() if not SpecifierSet(python).contains(oldest)] == []


FOLDERS = (".ci", "deploy", "tests")

SCRIPTS = sorted(
    str(path.relative_to(ROOT))
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.read_bytes().startswith((b"#!/bin/sh\n", b"#!/usr/bin/env bash\n"))
)


@needs("shellcheck")
@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_finds_no_fault(script):
    checked = subprocess.run(["shellcheck", script], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def setup(python, cwd=ROOT):
    return subprocess.run(
        [str(ROOT / "deploy" / "setup.sh"), "requirements.txt"],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHON": str(python)},
    )


@pytest.fixture
def fake_python(tmp_path):
    """A Python that fails where its command line contains a text, and succeeds elsewhere."""

    def make(text):
        script = tmp_path / "python"
        script.write_text(
            f'#!/bin/sh\ncase "$*" in *"{text}"*) exit 1;; *-V*) echo Python 3.9.2;; *print*) echo 3.11;; esac\n'
        )
        script.chmod(0o755)
        return script

    return make


def test_no_python(tmp_path):
    result = setup("no-such-python", tmp_path)
    assert result.returncode == 1
    assert "no-such-python was not found" in result.stderr and "apt-get install python3 python3-venv" in result.stderr


def test_an_old_python(fake_python, tmp_path):
    result = setup(fake_python("version_info < (3, 11)"), tmp_path)
    assert result.returncode == 1
    assert "Python 3.11 or newer is needed" in result.stderr and "Python 3.9.2" in result.stderr


def test_a_second_run_has_nothing_to_do(tmp_path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("# nothing is needed\n")
    first, second = setup(sys.executable, tmp_path), setup(sys.executable, tmp_path)
    assert (first.returncode, first.stdout) == (0, "Making .venv\nInstalling requirements.txt\n"), first.stderr
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    requirements.write_text("# still nothing\n")
    assert setup(sys.executable, tmp_path).stdout == "Installing requirements.txt\n"
