"""The Helm chart: the schemas of Kubernetes accept it, and nothing is installed without its secrets."""

import functools
import itertools
import subprocess
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from cdb.embedded.server import SETTING
from cdb.env import ROOT
from cdb.processes.machine import postgresql_sizes
from tests.programs import fetched

CHART = ROOT / "deploy" / "helm" / "cdb"
KUBERNETES = "1.30"
VALUE_SETS = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml"))


def helm(*arguments: str, values: str | None = None) -> subprocess.CompletedProcess:
    """Run Helm on the chart with a value set of `ci/`."""
    file = [f"--values={CHART}/ci/{values}-values.yaml"] if values else []
    return subprocess.run([fetched("helm"), *arguments, *file], capture_output=True, text=True, timeout=120)


def render(values: str, *more: str) -> str:
    """The manifests of release `cdb` in namespace `physics`."""
    rendered = helm(
        "template", "cdb", str(CHART), f"--kube-version={KUBERNETES}.0", "--namespace=physics", *more, values=values
    )
    assert rendered.returncode == 0, rendered.stderr
    return rendered.stdout


def resources(manifests: str) -> list[dict[str, Any]]:
    return [document for document in yaml.load_all(manifests, yaml.CSafeLoader) if document]


def refusals(manifests: str) -> list[str]:
    """What the schemas of Kubernetes and of the resources of others have against the manifests; empty where all are valid."""
    refused = []
    for document in resources(manifests):
        try:
            if document["kind"] in _schemas_of_others():
                jsonschema.validate(document, _schemas_of_others()[document["kind"]])
            else:
                kubernetes_validate.validate(document, KUBERNETES, strict=True)
        except jsonschema.ValidationError as error:
            refused.append(f"{document['kind']}: {error.message}")
    return refused


@functools.cache
def _schemas_of_others() -> dict[str, Any]:
    """By kind, with unknown fields refused, as Kubernetes' own are."""
    found = {}
    for definition in (
        yaml.load(file.read_text(), yaml.CSafeLoader)["spec"] for file in fetched("crds").glob("*.yaml")
    ):
        [version] = [version for version in definition["versions"] if version["storage"]]
        schema = version["schema"]["openAPIV3Schema"]
        # Kubernetes' own fields.
        schema["properties"]["metadata"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        found[definition["names"]["kind"]] = _strict(schema)
    return found


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {name: _strict(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        strict.setdefault("additionalProperties", False)
    return strict


pytestmark = pytest.mark.xdist_group("chart")
WORKLOADS = ("Deployment", "Job", "Pod")


def of_kind(documents, *kinds):
    return {document["metadata"]["name"]: document for document in documents if document["kind"] in kinds}


def pod_of(document):
    return document["spec"] if document["kind"] == "Pod" else document["spec"]["template"]["spec"]


@pytest.mark.parametrize("values", VALUE_SETS)
def test_helm_finds_no_fault(values):
    linted = helm("lint", "--strict", str(CHART), f"--kube-version={KUBERNETES}.0", values=values)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize(("values", "more"), list(itertools.product(VALUE_SETS, [[], ["--is-upgrade"]])))
def test_kubernetes_accepts_what_is_rendered(values, more):
    assert refusals(render(values, *more)) == []


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ("cluster", "existingSecret="),
        ("external", "database.external.existingSecret="),
        ("external", "database.external.host="),
    ],
)
def test_nothing_is_installed_without_its_secrets(values, missing):
    refused = helm("template", "cdb", str(CHART), f"--kube-version={KUBERNETES}.0", "--set", missing, values=values)
    assert refused.returncode and missing.rstrip("=") in refused.stderr


@pytest.mark.parametrize("values", VALUE_SETS)
def test_every_container_is_confined(values):
    for document in of_kind(resources(render(values)), *WORKLOADS).values():
        pod = pod_of(document)
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 10001
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"cpu", "memory"} <= set(container["resources"]["requests"])
            assert "memory" in container["resources"]["limits"]


def test_postgresql_gets_the_settings_of_deploy():
    """The chart reads deploy/postgresql.conf itself and has the rules of its table once more."""
    cluster = of_kind(resources(render("cluster")), "Cluster")["cdb-db"]
    sizes = postgresql_sizes(4096, 50 * 1024) | {"CONNECTIONS": 50 + 3 * (3 + 2) * 4}
    text = (ROOT / "deploy" / "postgresql.conf").read_text()
    for name, size in sizes.items():
        text = text.replace(f"@{name}@", str(size))
    settings = dict(SETTING.findall(text))
    # The operator writes its log in a format of its own.
    del settings["log_line_prefix"]
    assert settings and settings.items() <= cluster["spec"]["postgresql"]["parameters"].items()


def test_an_upgrade_migrates_before_it_replaces_pods():
    installed, upgraded = (
        next(iter(of_kind(resources(render("cluster", *more)), "Job").values())) for more in ([], ["--is-upgrade"])
    )
    # A hook would wait for a database that is made afterwards.
    assert "annotations" not in installed["metadata"]
    assert upgraded["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
