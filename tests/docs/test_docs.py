"""Lists in the documentation are complete and contain nothing that does not exist."""

import ast
import re

import pytest
from django.core.management import get_commands

from cdb.env import ROOT
from cdb_rest.api.urls import STRATEGY_ROUTES
from cdb_rest.named_sql import STATEMENTS
from cdb_rest.routes import ROUTES
from docs.reference.errors import ERRORS

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
    codes = {error.code for error in ERRORS}
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


@pytest.mark.parametrize("command", [name for name, app in get_commands().items() if app in ("cdb", "cdb_rest")])
def test_every_command_has_a_section(command):
    assert f"\n## `{command}`\n" in read("docs/commands.md")


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_is_used(name):
    sources = [source for package in ("cdb", "cdb_rest", "cdb_web") for source in (ROOT / package).rglob("*.py")]
    assert any(f'"{name}"' in source.read_text() for source in sources)


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


@pytest.mark.parametrize("package", ["cdb", "cdb_rest", "cdb_web"])
def test_the_architecture_names_every_package(package):
    text = read("docs/architecture.md")
    for init in (ROOT / package).glob("*/__init__.py"):
        assert f"`{init.parent.name}/`" in text
