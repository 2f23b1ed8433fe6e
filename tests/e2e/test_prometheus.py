"""A real Prometheus scrapes the real service and evaluates every query of the dashboard and of the rules."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest
import yaml

from cdb.env import ROOT
from tests.e2e.service import JobClient, Service, free_port
from tests.e2e.test_metrics import Load, Metrics, eventually
from tests.programs import needs

pytestmark = needs("nginx", "prometheus")
DEPLOY = ROOT / "deploy" / "prometheus"
# There is no replica here, and no exporter.
AWAY = re.compile(r"(cdb_replica|nginx|node|pg|namedprocess)_\w+")
NAMES = re.compile(r"\b(?:(?:cdb|nginx|node|pg|namedprocess)_\w+|cdb:\w+)(?::\w+)?|\bup\b")
LITERAL = re.compile(r'"[^"]*"')
GRAFANAS = {"$__rate_interval": "1m", "$__range": "5m", "$instance": ".*"}


class Prometheus:
    """A Prometheus and its API."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path, **parameters):
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}") as answer:  # noqa: S310
            document = json.load(answer)
        assert document["status"] == "success" and not document.get("warnings"), document
        return document["data"]

    def query(self, expression):
        return self.get("query", query=expression)["result"]

    def is_ready(self):
        try:
            return bool(self.query("cdb:requests:rate5m"))
        except OSError:
            return False


@pytest.fixture(scope="module")
def watched(new_directory, needs_packages):
    """A service that has something to tell."""
    with Service(new_directory() / "data", "serve", CDB_WORKERS="3").running() as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(watched, new_directory):
    """The example's configuration with the service's port, asking each second."""
    directory, port = new_directory(), free_port()
    for name in ("rules.yml", "alerts.yml"):
        shutil.copy(DEPLOY / name, directory)
    text = (DEPLOY / "prometheus.yml").read_text().replace("127.0.0.1:8000", f"127.0.0.1:{watched.port}")
    text = re.sub(r"(scrape_interval|evaluation_interval): 15s", r"\1: 1s", text)
    (directory / "prometheus.yml").write_text(text.replace("scrape_timeout: 10s", "scrape_timeout: 1s"))
    log = (directory / "log").open("w")
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={directory}/prometheus.yml",
            f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=log,
        stderr=log,
    )
    try:
        found = Prometheus(port)
        JobClient(watched.port).call("POST", "cloneGlobalTag/tiny/frozen", None)
        JobClient(watched.port).call("PUT", "gt_change_status/frozen/frozen", None)
        Load(watched.port).run(20)
        eventually(found.is_ready, True, 60)
        Load(watched.port).run(20)
        JobClient(watched.port).call("POST", "cloneGlobalTag/tiny/another", None)
        seen = Metrics(watched.port).sum("cdb_lookups_received_total")
        eventually(lambda: float(found.query("sum(cdb_lookups_received_total)")[0]["value"][1]), seen)
        yield found
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def expressions_of_the_dashboard():
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "cdb.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def rules(name):
    return [rule for group in yaml.safe_load((DEPLOY / name).read_text())["groups"] for rule in group["rules"]]


def test_every_query_of_the_dashboard_has_an_answer(prometheus):
    empty = []
    for title, expression in expressions_of_the_dashboard():
        plain = expression
        for name, value in GRAFANAS.items():
            plain = plain.replace(name, value)
        if not prometheus.query(plain):
            empty.append((title, expression))
    assert [one for one in empty if not AWAY.search(one[1]) and "ALERTS" not in one[1]] == []


def test_every_rule_is_evaluated(prometheus):
    groups = prometheus.get("rules")["groups"]
    found = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"] for rule in found} == {
        rule.get("alert") or rule["record"] for name in ("rules.yml", "alerts.yml") for rule in rules(name)
    }
    assert [(rule["name"], rule.get("lastError")) for rule in found if rule["health"] != "ok"] == []
    for rule in rules("rules.yml"):
        assert prometheus.query(rule["expr"]) and prometheus.query(rule["record"]), rule["record"]


def test_everything_that_rules_and_panels_ask_for_exists(prometheus):
    asked = [expression for _, expression in expressions_of_the_dashboard()]
    asked += [rule["expr"] for name in ("rules.yml", "alerts.yml") for rule in rules(name)]
    names = {name for expression in asked for name in NAMES.findall(LITERAL.sub("", expression))}
    assert len(names) > 30
    missing = [name for name in sorted(names) if not prometheus.get("series", **{"match[]": name})]
    assert [name for name in missing if not AWAY.fullmatch(name)] == []


def test_nothing_is_wrong_with_a_service_that_is_well(prometheus):
    [target] = prometheus.get("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    names = {alert["labels"]["alertname"] for alert in prometheus.get("alerts")["alerts"]}
    # One looks at the growth of a day, and waits for six hours of it.
    assert names <= {"CdbDatabaseGrowing"}
    # What changes it would be an alert.
    [frozen] = prometheus.query("cdb:frozen_revision")
    assert frozen["metric"]["global_tag"] == "frozen"
