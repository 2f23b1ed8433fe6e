"""Prometheus' own tool checks the rules and the configuration, and runs the unit tests of the alerts."""

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
