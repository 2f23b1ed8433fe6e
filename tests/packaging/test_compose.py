"""compose.yaml conforms to the specification, and nothing starts without its secrets."""

import json
import os
import subprocess
import sys

import jsonschema
import pytest
import yaml

from cdb.env import ROOT
from tests.programs import fetched, needs

# The order that depends_on gives; podman-compose itself could wait for health checks with systemd alone.
ORDER = ("primary", "standby", "migrate", "lookups", "others", "compiler", "nginx")
ENDING = ("migrate",)

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


def test_the_order_of_the_test_is_that_of_the_file():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert set(services) == set(ORDER)
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            assert ORDER.index(other) < ORDER.index(name)
            completed = "service_completed_successfully" if other in ENDING else "service_healthy"
            assert how["condition"] == completed


@needs("podman")
@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_starts_without_a_secret(secret):
    environment = {name: value for name, value in (os.environ | SECRETS).items() if name != secret}
    for given in (environment, environment | {secret: ""}):
        command = [sys.executable, "-m", "podman_compose", "--env-file", os.devnull, "config"]
        refused = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True)
        assert refused.returncode and f"required variable {secret} is missing" in refused.stderr
