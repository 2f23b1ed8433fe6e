"""The chart, rendered by Helm, and what Kubernetes would say about it."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdb.env import ROOT

CHART = ROOT / "deploy" / "helm" / "cdb"
TOOLS = ROOT / ".tools"
KUBERNETES = "1.30"
VALUE_SETS = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml"))


def tool(name: str) -> str:
    """The path of a tool that `make package-tools` fetches, or that is installed; skips where it is neither."""
    found = shutil.which(name, path=TOOLS) or shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not here (make package-tools, which needs Go)")
    return found


def helm(*arguments: str, values: str | None = None) -> subprocess.CompletedProcess:
    """Run Helm on the chart with a value set of `ci/`."""
    file = [f"--values={CHART}/ci/{values}-values.yaml"] if values else []
    return subprocess.run([tool("helm"), *arguments, *file], capture_output=True, text=True, timeout=120)


def render(values: str, *more: str) -> str:
    """The manifests of release `cdb` in namespace `physics`."""
    rendered = helm(
        "template", "cdb", str(CHART), f"--kube-version={KUBERNETES}.0", "--namespace=physics", *more, values=values
    )
    assert rendered.returncode == 0, rendered.stderr
    return rendered.stdout


def resources(manifests: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(manifests) if document]


def refusals(manifests: str, directory: Path) -> list[str]:
    """What the validator has against the manifests, a line for each field; empty where all are valid."""
    file = directory / "manifests.yaml"
    file.write_text(manifests)
    command = [tool("kubectl-validate"), f"--version={KUBERNETES}", f"--local-crds={TOOLS}/crds", "-o=json", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    told = json.loads(ended.stdout)[str(file)]
    # A document that it does not see can't be wrong.
    assert len(told) == len(resources(manifests))
    failed = [json.dumps(one) for one in told if one.get("status") == "Failure"]
    assert bool(failed) == bool(ended.returncode)
    return failed
