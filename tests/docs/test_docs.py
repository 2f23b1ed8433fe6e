"""Lists in the documentation are complete and contain nothing that does not exist."""

import ast
import json
import re

import pytest
from django.core.management import call_command, get_commands

from cdb.env import ROOT
from cdb_rest.api.browsers import GLOBAL_TAGS, PAYLOAD_IOVS, PAYLOAD_LISTS, PAYLOAD_TYPES
from cdb_rest.api.errors import STATUS_OF
from cdb_rest.api.urls import STRATEGY_ROUTES
from cdb_rest.models import ChangeAction
from cdb_rest.named_sql import STATEMENTS
from cdb_rest.routes import ROUTES
from cdb_rest.rules.status import Status
from cdb_rest.scenarios.definitions import SCENARIOS
from cdb_rest.scenarios.layouts import LAYOUTS
from loadtests.chaos.__main__ import FAULTS

NAMES_IN_DOCS = {
    "tag_id": "id",
    "list_id": "id",
    "iov_id": "id",
    "global_tag": "tag",
    "payload_type": "payload type",
    "major_end": "major end",
    "minor_end": "minor end",
}


def read(name):
    return (ROOT / name).read_text()


@pytest.mark.parametrize("path", [path for route in ROUTES + STRATEGY_ROUTES for path in route.paths])
def test_every_route_is_in_the_table(path):
    shown = re.sub(r"<str:(\w+)>", lambda match: f"<{NAMES_IN_DOCS.get(match[1], match[1])}>", path)
    assert f"`{shown}`" in read("docs/api.md") or f"POST: `{shown}`" in read("docs/api.md")


def error_codes():
    """All error codes: of error classes, of calls of `error_response`, and of nginx."""
    codes = {error.code for error in STATUS_OF}
    for file in (ROOT / "cdb_rest").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "error_response" and len(node.args) > 1:
                codes |= {node.args[1].value} if isinstance(node.args[1], ast.Constant) else set()
    codes |= set(re.findall(r'"code":"(\w+)"', read("deploy/nginx-errors.conf")))
    return codes | {
        "invalid_json",
        "body_too_complex",
        "unsupported_media_type",
        "method_not_allowed",
        "malformed_request",
    }


@pytest.mark.parametrize("code", sorted(error_codes()))
def test_every_error_code_is_in_the_table(code):
    assert f"| `{code}` |" in read("docs/errors.md")


def test_no_error_code_is_documented_that_does_not_exist():
    table = read("docs/errors.md")
    codes = {
        code
        for line in table.splitlines()
        if line.startswith("| ")
        for code in re.findall(r"`([a-z_]+)`", line.split("|")[2])
    }
    assert codes - {"code"} == error_codes()


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_every_scenario_is_in_the_table(scenario):
    row = f"| `{scenario.name}` | {scenario.payload_types} | {scenario.iovs_per_type:,} | {scenario.iovs:,} |"
    assert row in read("docs/glossary.md")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_named(layout):
    assert f"--layout {layout}" in read("docs/glossary.md")


@pytest.mark.parametrize("command", [name for name, app in get_commands().items() if app in ("cdb", "cdb_rest")])
def test_every_command_has_a_section(command):
    assert f"\n## `{command}`\n" in read("docs/commands.md")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_is_named(fault):
    assert f"`{fault.name}`" in read("docs/load-tests.md")


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_is_used(name):
    sources = [source for package in ("cdb", "cdb_rest", "cdb_web") for source in (ROOT / package).rglob("*.py")]
    assert any(f'"{name}"' in source.read_text() for source in sources)


@pytest.mark.parametrize("status", Status)
def test_every_status_is_in_the_table(status):
    assert f"| `{status}` |" in read("docs/api.md")


def test_sort_fields_and_filters_are_named():
    browse = read("docs/api.md").split("## Browse mode")[1].split("\n## ")[0]
    for browser in (GLOBAL_TAGS, PAYLOAD_TYPES, PAYLOAD_LISTS, PAYLOAD_IOVS):
        for name in [*browser.sort, *browser.filters]:
            assert f"`{name}`" in browse, name


def test_the_readme_is_short():
    assert len(read("README.md").splitlines()) <= 120


def test_make_help_lists_every_target():
    makefile = read("Makefile")
    targets = re.findall(r"^([a-z-]+):(.*)$", makefile, re.MULTILINE)
    assert all("##" in rest for _, rest in targets)


def test_links_between_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


@pytest.mark.django_db(transaction=True)
def test_the_dry_run_that_is_shown_is_what_it_answers(api):
    call_command("seed_scenario", "tiny", verbosity=0)
    section = read("docs/api.md").split("### Inserting in one call")[1]
    [asked] = re.findall(r"-d '(.*?)'\n", section, re.DOTALL)
    [shown] = re.findall(r"```json\n(.*?)```", section, re.DOTALL)[:1]
    answer = api.post("payload-iovs/insert", json.loads(asked)).ok()
    # The numbers of rows and lists depend on what the database has seen before.
    numbered = [(document["rows"][0], document["rows"][0]["split"][0]) for document in (answer, json.loads(shown))]
    for row, split in numbered:
        row["payload_list"] = split["id"] = None
    assert numbered[0] == numbered[1]
    assert {name: value for name, value in answer.items() if name != "rows"} == {
        name: value for name, value in json.loads(shown).items() if name != "rows"
    }


@pytest.mark.parametrize("action", ChangeAction.values)
def test_every_action_of_the_change_log_is_named(action):
    assert f"`{action}`" in read("docs/api.md").split("## The change log")[1].split("\n## ")[0]


@pytest.mark.parametrize("package", ["cdb", "cdb_rest", "cdb_web"])
def test_the_architecture_names_every_package(package):
    text = read("docs/architecture.md")
    for init in (ROOT / package).glob("*/__init__.py"):
        assert f"`{init.parent.name}/`" in text


@pytest.mark.parametrize("page", ["architecture", "caching", "requests"])
def test_an_explanation_names_no_file_that_is_gone(page):
    text = read(f"docs/{page}.md")
    roots = (ROOT, ROOT / "cdb_rest", ROOT / "cdb_web", ROOT / "cdb")
    for named in re.findall(r"`(\w+(?:/\w+)+\.\w+)`", text):
        assert any((root / named).exists() for root in roots), named


def test_the_functions_of_a_step_are_in_its_file():
    row = r"^\| [\d-]+ \| `([\w/]+\.(?:py|sql))` \| (.*?) \|"
    steps = re.findall(row, read("docs/requests.md"), re.MULTILINE)
    assert len(steps) > 15
    for file, functions in steps:
        [source] = [
            root / file for root in (ROOT, ROOT / "cdb_rest", ROOT / "cdb_web", ROOT / "cdb") if (root / file).exists()
        ]
        for name in re.findall(r"`(?:\w+\.)*(\w+)`", functions):
            assert re.search(rf"\b(def|class|FUNCTION) {name}\b", source.read_text()) or file.startswith("sql/"), name


REFERENCES = ("settings", "commands", "errors", "api", "openapi", "glossary", "metrics", "limits")


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_is_short_unless_it_is_a_reference(page):
    assert page.stem in REFERENCES or len(page.read_text().splitlines()) <= 350
