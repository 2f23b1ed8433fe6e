"""The Helm chart, rendered, and its validation by the schemas of Kubernetes."""

import functools
import subprocess
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

from cdb.env import ROOT
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
