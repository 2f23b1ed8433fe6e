"""Every operation of the OpenAPI description, with generated requests, good and bad, against a running service."""

import json
import re

import pytest
import schemathesis
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from cdb_rest.api.base.json import dump
from cdb_rest.routes import ROUTES
from tests.conftest import PREFIX
from tests.e2e.service import JobClient, Service
from tests.profiles import examples

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]


@pytest.fixture(scope="module")
def fuzzed(new_directory):
    """A service of its own: the fuzz deletes and creates at will."""
    service = Service(new_directory() / "data").start()
    client = JobClient(service.port)
    # Short names that generated requests may hit.
    for name in ("0", "1", "a"):
        client.call("POST", "gt", {"name": name, "status": "unlocked"})
        client.call("POST", "pt", {"name": name})
        client.call("POST", "pl", {"payload_type": name})
    created = service.manage("token", "create", "--name", "fuzz", "--role", "administrator")
    service.headers = {"Authorization": f"Bearer {created.stdout.strip()}"}
    proposed = {"global_tag": "0", "kind": "status", "document": {"status": "locked"}, "reason": "why"}
    client.call("POST", "requests", proposed, headers=service.headers)
    yield service
    assert service.process.poll() is None, "\n".join(service.lines[-30:])
    service.stop()


DESCRIPTION = schemathesis.openapi.from_dict(json.loads(dump(SchemaGenerator().get_schema(public=True))))
# One spelling of each route; tests/api shows that all of them are answered alike.
FIRST_PATHS = {PREFIX + re.sub(r"<str:(\w+)>", r"{\1}", route.paths[0]) for route in ROUTES}
OPERATIONS = {
    operation.label: operation
    for operation in (found.ok() for found in DESCRIPTION.get_all_operations())
    if operation.path in FIRST_PATHS
}


@pytest.mark.parametrize("label", OPERATIONS)
@pytest.mark.parametrize("mode", GenerationMode)
def test_no_request_gets_a_5xx_a_redirect_or_anything_but_json(fuzzed, label, mode):
    @settings(
        max_examples=examples(15),
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(OPERATIONS[label].as_strategy(generation_mode=mode))
    def play(case):
        # Requests for changes come from known clients only.
        headers = fuzzed.headers if "/requests" in case.path else {}
        response = case.call(base_url=f"http://127.0.0.1:{fuzzed.port}", allow_redirects=False, headers=headers)
        assert not 300 <= response.status_code < 400
        if response.status_code == 200 and "content-disposition" in response.headers:
            assert response.headers["content-type"][0].startswith(("text/csv", "application/x-ndjson"))
        else:
            assert response.headers["content-type"] == ["application/json"]
            body = json.loads(response.content)
        if response.status_code != 200:
            assert body["detail"] and body["code"]
        case.validate_response(response, checks=CHECKS)

    try:
        play()
    except Unsatisfiable:
        # An operation without parameters has no wrong requests.
        assert mode is GenerationMode.NEGATIVE
