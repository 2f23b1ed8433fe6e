"""The Helm chart: the schemas of Kubernetes and the operators accept it, and what its containers run works."""

import contextlib
import itertools
import json
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import requests
import yaml

from cdb.embedded.server import SETTING
from cdb.env import ROOT
from cdb.processes.machine import postgresql_sizes
from cdb.serving.supervisor import nginx_program
from loadtests.service import becomes_true
from tests.e2e.conftest import fresh  # noqa: F401 -- a fixture
from tests.e2e.service import free_port
from tests.packaging.test_containers import nginx_configuration
from tests.programs import fetched, require

CHART = ROOT / "deploy" / "helm" / "cdb"
KUBERNETES = "1.30"
VALUE_SETS = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml"))


def helm(*arguments: str, values: str) -> subprocess.CompletedProcess:
    """Run Helm on the chart with a value set of `ci/`."""
    command = [fetched("helm"), *arguments, f"--values={CHART}/ci/{values}-values.yaml"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def template(values: str, *more: str) -> subprocess.CompletedProcess:
    return helm(
        "template", "cdb", str(CHART), f"--kube-version={KUBERNETES}", "--namespace=physics", *more, values=values
    )


def render(values: str, *more: str) -> str:
    """The manifests of release `cdb` in namespace `physics`."""
    rendered = template(values, *more)
    assert rendered.returncode == 0, rendered.stderr
    return rendered.stdout


def resources(manifests: str) -> list[dict[str, Any]]:
    return [document for document in yaml.load_all(manifests, yaml.CSafeLoader) if document]


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """What kubeconform has against manifests, by the schemas of Kubernetes and of the operators, with unknown fields refused."""
    made = tmp_path_factory.mktemp("schemas")
    published = Path(kubernetes_validate.__file__).parent / f"kubernetes-json-schema/v{KUBERNETES}.0-local-strict"
    definitions = json.loads((published / "_definitions.json").read_text())["$defs"]

    def write_kubernetes(api_version: str, kind: str) -> None:
        group, _, version = api_version.rpartition("/")
        name = "-".join(part for part in (kind.lower(), group.split(".")[0], version) if part) + ".json"
        if (published / name).exists() and not (made / name).exists():
            # Each file refers to another, by a path that does not exist here.
            schema = json.loads((published / name).read_text().replace("/api/_definitions.json", ""))
            del schema["$schema"]
            (made / name).write_text(json.dumps(schema | {"$defs": definitions}))

    for definition in fetched("crds").glob("*.yaml"):
        described = yaml.load(definition.read_text(), yaml.CSafeLoader)["spec"]
        [version] = [version for version in described["versions"] if version["storage"]]
        schema = version["schema"]["openAPIV3Schema"]
        # Kubernetes' own fields.
        schema["properties"]["metadata"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        (made / f"{described['names']['kind'].lower()}.json").write_text(json.dumps(_strict(schema)))

    def of(manifests: str) -> list[str]:
        for document in resources(manifests):
            write_kubernetes(document["apiVersion"], document["kind"])
        where = [f"{made}/{{{{.ResourceKind}}}}{suffix}.json" for suffix in ("{{.KindSuffix}}", "")]
        command = [fetched("kubeconform"), "-strict", *(f"-schema-location={one}" for one in where), "-"]
        return subprocess.run(command, input=manifests, capture_output=True, text=True, timeout=60).stdout.splitlines()

    return of


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
    linted = helm("lint", "--strict", str(CHART), f"--kube-version={KUBERNETES}", values=values)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize(("values", "more"), list(itertools.product(VALUE_SETS, [[], ["--is-upgrade"]])))
def test_kubernetes_accepts_what_is_rendered(values, more, refusals):
    assert refusals(render(values, *more)) == []


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ("cluster", "existingSecret="),
        ("external", "database.external.existingSecret="),
        ("external", "database.external.url="),
        # A password in a manifest.
        ("external", "database.external.url=postgresql://cdb:secret@db/cdb"),
        ("cluster", "settings.CDB_SECRET_KEY=secret"),
    ],
)
def test_secrets_are_given_by_reference(values, wrong):
    refused = template(values, "--set", wrong)
    assert refused.returncode and wrong.split("=")[0].rpartition(".")[2] in refused.stderr


@pytest.mark.parametrize("values", VALUE_SETS)
def test_every_container_is_confined(values):
    documents = resources(render(values))
    isolated = [policy["spec"]["podSelector"]["matchLabels"] for policy in of_kind(documents, "NetworkPolicy").values()]
    for document in of_kind(documents, *WORKLOADS).values():
        pod = pod_of(document)
        labels = (document if document["kind"] == "Pod" else document["spec"]["template"])["metadata"]["labels"]
        assert any(selected.items() <= labels.items() for selected in isolated)
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


class Pods:
    """The containers of the rendered chart as processes of this machine, each at a port of its own instead of 8000."""

    def __init__(self, database: str, working: Path) -> None:
        own = f"database.external.url={database},database.external.replicaUrls=null"
        self._documents = of_kind(resources(render("external", "--set", own)), *WORKLOADS)
        self._working = working
        self._ended = contextlib.ExitStack()

    def __enter__(self) -> "Pods":
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.close()

    def _container(self, name: str) -> tuple[dict[str, Any], dict[str, str], list[str]]:
        """A container of a workload, with its environment here and its command after tini."""
        [found] = [document for own, document in self._documents.items() if own.startswith(name)]
        container = pod_of(found)["containers"][0]
        hidden = ("CDB_", "DATABASE_URL", "PG", "SCENARIO", "DEBUG")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        # start.sh runs the python3 of the image.
        environment |= {"TMPDIR": str(self._working), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        environment |= {"CDB_ENV_FILE": os.devnull, "CDB_DATA_DIR": str(self._working)}
        given = {"POD_IP": "127.0.0.1", "PGPASSWORD": "unused", "CDB_SECRET_KEY": secrets.token_urlsafe(50)}
        given["CDB_MAIL_URL"] = ""
        environment |= {
            one["name"]: one["value"].replace("$(POD_IP)", "127.0.0.1") if "value" in one else given[one["name"]]
            for one in container["env"]
        }
        command = [*container["command"], *container.get("args", [])]
        assert command[:2] == ["tini", "--"]
        return container, environment, command[2:]

    def run(self, name: str, **replaced: str) -> None:
        """Run a container that ends, with these words of its command replaced."""
        _, environment, command = self._container(name)
        command = [replaced.get(word, word) for word in command]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, name: str) -> tuple[int, dict[str, Any]]:
        """Start a server. Returns its port and its container."""
        container, environment, command = self._container(name)
        port = free_port()
        command = [re.sub(r"\b8000$", str(port), word) for word in command]
        self._keep(subprocess.Popen(command, cwd=ROOT, env=environment))
        return port, container

    def start_nginx(self, lookups: int, others: int) -> int:
        """start.sh does the same with directories that only the image has."""
        port = free_port()
        addresses = (f"--listen={port}", f"--lookups=127.0.0.1:{lookups}", f"--others=127.0.0.1:{others}")
        (self._working / "nginx.conf").write_text(nginx_configuration(self._working, *addresses))
        options = ["-p", f"{self._working}/", "-c", "nginx.conf", "-e", "stderr", "-g", "user root root;"]
        self._keep(subprocess.Popen([nginx_program(), *options]))
        return port

    def _keep(self, process: subprocess.Popen) -> None:
        self._ended.callback(process.wait, 30)
        self._ended.callback(process.terminate)


def probe(kind, port, container):
    """The status that the kubelet gets from a probe; 0 without a connection."""
    request = container[f"{kind}Probe"]["httpGet"]
    headers = {header["name"]: header["value"] for header in request["httpHeaders"]}
    with contextlib.suppress(requests.ConnectionError):
        return requests.get(f"http://127.0.0.1:{port}{request['path']}", headers=headers, timeout=25).status_code
    return 0


def test_the_containers_serve_and_only_readiness_follows_the_database(fresh, tmp_path):  # noqa: F811 -- the fixture
    require("nginx")
    database = fresh(SCENARIO="none").start()
    url = f"postgresql://cdb@/cdb?host={database.data / 'postgres' / 'socket'}"
    with Pods(url, tmp_path) as pods:
        pods.run("cdb-migrate")
        pools = [pods.start("cdb-lookups"), pods.start("cdb-others")]
        for pool in pools:
            assert becomes_true(lambda pool=pool: probe("startup", *pool) == probe("readiness", *pool) == 200, 60)
        port = pods.start_nginx(*(port for port, _ in pools))
        assert becomes_true(lambda: probe("liveness", port, pools[0][1]) == 200, 20)
        # Twice, because it must leave nothing that hinders the next one.
        for _ in range(2):
            pods.run("cdb-test", **{"http://cdb-nginx": f"http://127.0.0.1:{port}"})
        tags = requests.get(f"http://127.0.0.1:{port}/api/cdb_rest/globalTags", timeout=20).json()
        assert tags == [] and "helm-test" in database.manage("token", "list").stdout

        assert database.stop() == 0
        started_later = pods.start("cdb-lookups")
        assert becomes_true(lambda: probe("startup", *started_later) == 200, 60)
        for pool in [*pools, started_later]:
            assert (probe("readiness", *pool), probe("liveness", *pool)) == (503, 200)
