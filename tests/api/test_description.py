"""The OpenAPI description: in the order of use, each operation described once, with examples that are true."""

import json
import re
from importlib import import_module

import pytest
from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator

from cdb_rest.api.json import dump
from cdb_rest.api.urls import views_and_paths
from cdb_rest.models import GlobalTagStatus

GROUPS = [
    "Lookup",
    "Global tags",
    "Payload types",
    "Payload lists",
    "Payload IOVs",
    "Inserting",
    "Change log",
    "Reverting",
    "Export",
    "Comparison",
    "Analysis",
    "Settings",
    "Identity",
    "Legacy paths",
]
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
    "DELETE payload-types/{name}/delete": "POST payload-types",
    "DELETE payload-lists/{name}/delete": "POST payload-lists",
    "POST global-tags/{name}/revert": "POST payload-iovs/bulk",
}
# What a request needs besides the parameters that are always required.
QUERIES = {"GET payload-iovs/uses": "checksum=1"}
TIMES = {"created", "updated", "inserted", "time"}


@pytest.fixture
def tiny(transactional_db):
    # As the migration has them, and not the tests.
    for name, description in import_module("cdb_rest.migrations.0001_conditions_database").STATUSES.items():
        GlobalTagStatus.objects.filter(name=name).update(description=description)
    call_command("seed_scenario", "tiny", verbosity=0)


def test_the_groups_are_in_the_order_of_use_with_a_sentence_each():
    assert [group["name"] for group in DESCRIPTION["tags"]] == GROUPS
    assert all(group["description"].endswith(".") for group in DESCRIPTION["tags"])
    used = [operation["tags"] for operation in DESCRIBED.values()]
    assert sorted(used, key=lambda tags: GROUPS.index(tags[0])) == used


@pytest.mark.parametrize("label", DESCRIBED)
def test_every_operation_has_a_summary_and_a_description(label):
    operation = DESCRIBED[label]
    assert re.fullmatch(
        r"(Look up|List|Get|Create|Clone|Change|Delete|Attach|Insert|Revert|Export) [^.]{5,45}", operation["summary"]
    )
    first = operation["description"].split("\n\n")[0]
    assert first.endswith(".") and first != operation["summary"]


@pytest.mark.parametrize("label", LEGACY)
def test_a_legacy_path_names_the_operation_that_it_is_the_same_as(label):
    operation = LEGACY[label]
    same = operation["summary"].removeprefix("Same as ").replace("/api/cdb_rest/", "")
    assert f"Legacy path: `{label.replace(' ', ' /api/cdb_rest/')}`" in DESCRIBED[same]["description"]
    for part in ("parameters", "requestBody", "responses"):
        assert operation.get(part) == DESCRIBED[same].get(part), part


def test_no_operation_is_described_twice():
    handlers = {}
    for view, paths in views_and_paths():
        for path in paths:
            for method in ("GET", "POST", "PUT", "DELETE"):
                label = f"{method} " + re.sub(r"<str:(.*?)>", r"{\1}", path)
                if label in DESCRIBED:
                    key = getattr(view, method.lower()), frozenset(re.findall(r"{(\w+)}", label))
                    handlers.setdefault(key, []).append(label)
    assert [labels for labels in handlers.values() if len(labels) > 1] == []
    assert sum(map(len, handlers.values())) == len(DESCRIBED)


def test_parameters_and_bodies_have_examples():
    lacking = [
        (label, parameter["name"])
        for label, operation in OPERATIONS.items()
        for parameter in operation.get("parameters", ())
        if parameter.get("required") and not ("example" in parameter["schema"] and parameter["description"])
    ]
    lacking += [
        (label, "body")
        for label, operation in OPERATIONS.items()
        if "requestBody" in operation and not operation["requestBody"]["content"]["application/json"].get("examples")
    ]
    assert lacking == []


def ask(api, label, query=""):
    """The operation, with the examples of its parameters and its body."""
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
    return api(method, f"{path.format(**filled)}?{query}", body)


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("label", DESCRIBED)
def test_the_examples_of_requests_succeed_in_a_new_database(api, tiny, label):
    if label in NEEDS:
        ask(api, NEEDS[label]).ok()
    assert ask(api, label, QUERIES.get(label, "")).status == 200


def response_examples():
    return [
        pytest.param(label, example, id=f"{label} {example['summary']}")
        for label, operation in DESCRIBED.items()
        for content in operation["responses"]["200"]["content"].values()
        for example in content.get("examples", {}).values()
    ]


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize(("label", "example"), response_examples())
def test_the_examples_of_responses_are_true(api, tiny, label, example):
    if label in NEEDS:
        ask(api, NEEDS[label]).ok()
    found = re.fullmatch(r"With (.*)|In the scenario tiny", example["summary"])
    actual = ask(api, label, found[1] or "").ok()
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


def test_every_get_has_an_example_of_its_response():
    lacking = [
        label
        for label, operation in DESCRIBED.items()
        if label.startswith("GET")
        and not any(content.get("examples") for content in operation["responses"]["200"]["content"].values())
    ]
    # A file, and what differs between machines.
    assert lacking == ["GET global-tags/{name}/export"]
