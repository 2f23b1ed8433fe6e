"""The OpenAPI description: in the order of use, each operation described once, with examples that are true."""

import json
import re
from importlib import import_module

import pytest
from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator

from cdb_rest.api.base.json import dump
from cdb_rest.models import GlobalTagStatus

DESCRIPTION = json.loads(dump(SchemaGenerator().get_schema(public=True)))
OPERATIONS = {
    f"{method.upper()} {path.removeprefix('/api/cdb_rest/')}": operation
    for path, methods in DESCRIPTION["paths"].items()
    for method, operation in methods.items()
}
LEGACY = {label: operation for label, operation in OPERATIONS.items() if operation["tags"] == ["Legacy paths"]}
DESCRIBED = {label: operation for label, operation in OPERATIONS.items() if label not in LEGACY}
# What the examples of an operation need besides the scenario.
NEEDS = {
    "DELETE global-tags/{name}/delete": "POST global-tags/{source}/clone/{target}",
    "DELETE global-tags/statuses/{name}/delete": "POST global-tags/statuses",
    "DELETE payload-types/{name}/delete": "POST payload-types",
    "DELETE payload-lists/{name}/delete": "POST payload-lists",
    "POST global-tags/{name}/revert": "POST payload-iovs/bulk",
    "POST global-tags/{name}/changes/{revision}/undo": "POST payload-iovs/bulk",
    **{
        f"{method} requests/{{number}}{action}": "POST requests"
        for method, action in (
            ("GET", ""), ("POST", "/accept"), ("POST", "/reject"), ("POST", "/withdraw"), ("POST", "/comments"),
        )
    },
}  # fmt: skip
# What a request needs besides the parameters that are always required.
QUERIES = {"GET payload-iovs/uses": "checksum=1"}
TIMES = {"created", "updated", "inserted", "time"}


@pytest.fixture
def tiny(transactional_db, login):
    # As the migration has them, and not the tests.
    for name, description in import_module("cdb_rest.migrations.0001_conditions_database").STATUSES.items():
        GlobalTagStatus.objects.filter(name=name).update(description=description)
    call_command("seed_scenario", "tiny", verbosity=0)
    return login("administrator")


def ask(api, headers, label, query=""):
    """The operation, with the examples of its parameters and its body. Requests for changes need a token."""
    method, path = label.split(" ")
    filled = {
        one["name"]: one["schema"]["example"] for one in OPERATIONS[label].get("parameters", ()) if one.get("required")
    }
    query = "&".join(
        [
            *(f"{name}={value}" for name, value in filled.items() if f"{{{name}}}" not in path),
            *([query] if query else []),
        ]
    )
    bodies = OPERATIONS[label].get("requestBody", {}).get("content", {}).get("application/json", {}).get("examples", {})
    body = next((example["value"] for example in bodies.values()), None)
    return api(method, f"{path.format(**filled)}?{query}", body, **(headers if "request" in path else {}))


def response_examples():
    return [
        pytest.param(label, example, id=f"{label} {example['summary']}")
        for label, operation in DESCRIBED.items()
        for content in operation["responses"]["200"]["content"].values()
        for example in content.get("examples", {}).values()
    ]


# Those with examples of responses are asked below.
WITH_EXAMPLES = {param.values[0] for param in response_examples()}
WITHOUT_EXAMPLES = [label for label in DESCRIBED if label not in WITH_EXAMPLES]


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("label", WITHOUT_EXAMPLES)
def test_the_examples_of_requests_succeed_in_a_new_database(api, tiny, label):
    if label in NEEDS:
        ask(api, tiny, NEEDS[label]).ok()
    assert ask(api, tiny, label, QUERIES.get(label, "")).status == 200


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize(("label", "example"), response_examples())
def test_the_examples_of_responses_are_true(api, tiny, label, example):
    if label in NEEDS:
        ask(api, tiny, NEEDS[label]).ok()
    found = re.fullmatch(r"With (.*)|In the scenario tiny", example["summary"])
    actual = ask(api, tiny, label, found[1] or "").ok()
    assert is_within(example["value"], actual), actual


def is_within(example, actual):
    """Whether the example is true: of an array it may have some objects or rows, of an object without an id some members."""
    if isinstance(example, dict):
        complete = "id" not in example or example.keys() == actual.keys()
        return complete and all(is_like(key, example[key], actual[key]) for key in example)
    if isinstance(example, list) and example and isinstance(example[0], dict | list):
        return all(any(is_within(one, other) for other in actual) for one in example)
    return example == actual


def is_like(key, example, actual):
    if key in TIMES:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", actual)) and len(example) == len(actual)
    return is_within(example, actual)
