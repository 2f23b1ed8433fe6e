"""The alerts and the dashboard: valid, documented, and each alert tested in both directions."""

import json
import re

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from cdb.env import ROOT

DEPLOY = ROOT / "deploy" / "prometheus"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "cdb.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
ALERTS = [rule for group in yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
TRIALS = [
    (trial["alertname"], bool(trial["exp_alerts"]))
    for file in DEPLOY.glob("*_test.yml")
    for test in yaml.safe_load(file.read_text())["tests"]
    for trial in test["alert_rule_test"]
]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_each_alert_says_what_is_wrong_and_where_to_read_what_to_do(alert):
    assert set(alert["annotations"]) == {"summary", "description", "runbook"}
    assert alert["labels"]["severity"] in ("critical", "warning")
    document, anchor = alert["annotations"]["runbook"].split("#")
    assert anchor == alert["alert"].lower()
    section = (ROOT / document).read_text().split(f"\n### {alert['alert']}\n")
    assert len(section) == 2 and len(section[1].split("\n### ")[0].strip()) > 40


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_each_alert_is_tried_where_it_fires_and_where_it_does_not(alert):
    assert {fires for name, fires in TRIALS if name == alert["alert"]} == {True, False}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_each_panel_says_what_it_shows_and_in_which_unit(panel):
    assert panel["description"].endswith(".") and panel["fieldConfig"]["defaults"]["unit"]
    assert panel["targets"] and all(target["legendFormat"] for target in panel["targets"])
    assert panel["datasource"]["uid"] == "${datasource}"


def test_grafanas_own_classes_know_all_that_is_in_it():
    register_default_plugins()
    known = json.loads(JSONEncoder().encode(Dashboard.from_json(json.loads(json.dumps(DASHBOARD)))))
    unknown = list(lost(DASHBOARD, known))
    # What Prometheus's annotations have beyond those of others.
    assert [place for place in unknown if not place.startswith("/annotations/list/0/")] == []


def lost(written, known, place=""):
    """Where something is written that is not known, or known as something else."""
    if isinstance(written, dict) and isinstance(known, dict):
        for key, value in written.items():
            yield from lost(value, known.get(key), f"{place}/{key}")
    elif isinstance(written, list) and isinstance(known, list) and len(written) == len(known):
        for number, pair in enumerate(zip(written, known, strict=True)):
            yield from lost(*pair, f"{place}/{number}")
    elif written != known:
        yield place


def test_panels_do_not_cover_each_other():
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_rows_are_those_that_the_manual_names():
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    manual = (ROOT / "docs" / "monitoring.md").read_text()
    assert all(re.search(rf"\b{row}\b", manual, re.IGNORECASE) for row in rows), rows
