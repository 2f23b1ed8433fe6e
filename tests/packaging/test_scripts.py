"""The project's shell scripts."""

import subprocess

import pytest

from cdb.env import ROOT
from tests.programs import needs

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
