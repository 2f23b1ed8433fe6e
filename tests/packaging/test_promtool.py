"""Prometheus' own tool checks the rules and the configuration, and runs the unit tests of the alerts."""

import json
import re
import subprocess

import pytest

from cdb.env import ROOT
from tests.programs import needs

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
