"""The project itself: its packages, shell scripts, and the messages of deploy/setup.sh."""

import importlib.metadata
import re
import subprocess
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
