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
FRESH_MACHINE = "tests/packaging/fresh_machine.sh"


@needs("shellcheck")
@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_finds_no_fault(script):
    checked = subprocess.run(["shellcheck", script], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_scripts_are_found():
    assert {".ci/run", "deploy/setup.sh", FRESH_MACHINE} <= set(SCRIPTS)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--suite"], "--suite needs a value"),
        (["--suite", "13"], "--suite must be the name of a Debian suite, such as bookworm (got 13)"),
        (["--as", "daemon"], "--as must be root, user or root,user (got daemon)"),
        (["--only", "lint"], "--only must be run, test or test-all (got lint)"),
        (["--bad"], "unknown option --bad; --help lists them"),
    ],
)
def test_the_fresh_machine_refuses_a_bad_option_in_one_line(arguments, error):
    refused = subprocess.run([ROOT / FRESH_MACHINE, *arguments], capture_output=True, text=True)
    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", f"fresh_machine.sh: {error}\n")


def test_the_help_of_the_fresh_machine_has_each_of_its_options():
    text = (ROOT / FRESH_MACHINE).read_text()
    [parsed] = [line for line in text.splitlines() if line.strip().startswith("--suite |")]
    printed = subprocess.run([ROOT / FRESH_MACHINE, "--help"], capture_output=True, text=True, check=True).stdout
    for option in parsed.strip().rstrip(")").split(" | "):
        assert f"  {option} " in printed
