"""The project itself: its packages, shell scripts, compose.yaml, and the rules of Prometheus."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib

import jsonschema
import pytest
import yaml
from django.conf import settings
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from cdb.env import ROOT
from tests.programs import fetched, needs

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_same_everywhere():
    chart = yaml.safe_load((ROOT / "deploy/helm/cdb/Chart.yaml").read_text())
    newest = re.search(r"^## \[(\d\S*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    versions = [chart["version"], chart["appVersion"], settings.SPECTACULAR_SETTINGS["VERSION"], newest[1]]
    assert set(versions) == {PROJECT["version"]}


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


SECRETS = {
    # With what shells, URLs and SQL take for their own.
    "POSTGRES_PASSWORD": "super 'user'",
    "CDB_DATABASE_PASSWORD": "p@ss:w/o'r\"d %41",
    "CDB_REPLICATION_PASSWORD": "repl'ica $tion",
    "CDB_SECRET_KEY": "0123456789abcdef" * 4,
}


def test_the_file_is_as_the_specification_of_compose_has_it():
    schema = json.loads(fetched("compose-spec.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    document = yaml.safe_load((ROOT / "compose.yaml").read_text())
    assert list(validator.iter_errors(document)) == []
    document["services"]["nginx"]["healthchek"] = {}
    assert list(validator.iter_errors(document))


@needs("podman")
@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_starts_without_a_secret(secret):
    environment = {name: value for name, value in (os.environ | SECRETS).items() if name != secret}
    for given in (environment, environment | {secret: ""}):
        command = [sys.executable, "-m", "podman_compose", "--env-file", os.devnull, "config"]
        refused = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True)
        assert refused.returncode and f"required variable {secret} is missing" in refused.stderr


DEPLOY = ROOT / "deploy" / "prometheus"


@needs("promtool")
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "rules.yml", "alerts.yml"),
        ("check", "config", "prometheus.yml"),
        ("test", "rules", *(trials.name for trials in sorted(DEPLOY.glob("*_test.yml")))),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_prometheus_own_tool_finds_no_fault(arguments):
    checked = subprocess.run(["promtool", *arguments], cwd=DEPLOY, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_metric_of_ours_that_rules_and_panels_ask_for_exists():
    panels = json.loads((ROOT / "deploy" / "grafana" / "cdb.json").read_text())["panels"]
    asked = " ".join(target["expr"] for panel in panels for target in panel.get("targets", []))
    asked += "".join((DEPLOY / name).read_text() for name in ("rules.yml", "alerts.yml"))
    names = set(re.findall(r"\bcdb_[a-z_]+", asked))
    known = set(re.findall(r'"(cdb_[a-z_]+)"', "".join(file.read_text() for file in (ROOT / "cdb_rest").rglob("*.py"))))
    assert len(names) > 20
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in names} - known == set()
