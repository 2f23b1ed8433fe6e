"""The files about the project itself: license, changelog, and the checks before a commit."""

import importlib.metadata
import re
import subprocess
import tomllib

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from cdb.env import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# The kinds of changes of Keep a Changelog.
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_license_is_named_and_there():
    assert (PROJECT["license"], PROJECT["license-files"]) == ("BSD-3-Clause", ["LICENSE"])
    text = " ".join((ROOT / "LICENSE").read_text().split())
    assert text.startswith("BSD 3-Clause License Copyright (c) 2026, The cdb authors Redistribution and use in source")
    assert text.count("Redistributions") == 2 and "Neither the name of the copyright holder" in text


def test_each_pinned_package_runs_on_the_oldest_python():
    assert PROJECT["requires-python"] == ">=3.11"
    # That of Debian 12; later packages sometimes need a later patch release.
    oldest = "3.11.2"
    pinned = re.findall(r"^[^\s#].*?==[^\s]+", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
    names = [Requirement(line).name for line in pinned]
    assert len(names) > 100
    needs = {name: importlib.metadata.metadata(name)["Requires-Python"] or "" for name in names}
    assert [name for name, python in needs.items() if not SpecifierSet(python).contains(oldest)] == []


def test_a_commit_is_checked_by_what_ci_checks_first():
    configuration = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    [hook] = [hook for repository in configuration["repos"] for hook in repository["hooks"]]
    assert [repository["repo"] for repository in configuration["repos"]] == ["local"]
    assert (hook["entry"], hook["language"]) == ("make lint", "system")
    # Otherwise make would take the names of the changed files for targets, or check nothing where none matches.
    assert (hook["pass_filenames"], hook["always_run"]) == (False, True) and "files" not in hook
    assert re.search(rf"^{hook['entry']}$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    planned = subprocess.run(["make", "--dry-run", "lint"], cwd=ROOT, capture_output=True, text=True, check=True)
    for command in ("ruff check .", "ruff format --check .", "lint-imports", "makemigrations --check", "spectacular"):
        assert command in planned.stdout


def test_the_changelog_has_the_version_of_the_project_with_its_date_and_only_known_kinds():
    headings = re.findall(r"^(##+) (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    versions = [title for level, title in headings if level == "##"]
    assert versions[0] == "[Unreleased]" and len(versions) > 1
    for title in versions[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", title)
    assert versions[1].startswith(f"[{PROJECT['version']}] - ")
    dates = [title.split(" - ")[1] for title in versions[1:]]
    assert dates == sorted(dates, reverse=True)
    assert {title for level, title in headings if level == "###"} <= KINDS
