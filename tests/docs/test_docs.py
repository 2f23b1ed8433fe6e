"""Lists and reference pages of the documentation are complete, and its site is built without warnings."""

import ast
import json
import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from cdb.env import ROOT
from cdb.variables import VARIABLES
from cdb_rest.api.urls import STRATEGY_ROUTES
from cdb_rest.named_sql import STATEMENTS
from cdb_rest.routes import ROUTES
from docs.reference import __main__ as reference
from docs.reference.errors import ERRORS

NAMES_IN_DOCS = {
    "tag_id": "id", "list_id": "id", "iov_id": "id", "global_tag": "tag", "payload_type": "payload type",
    "major_end": "major end", "minor_end": "minor end",
}  # fmt: skip


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
        "invalid_json", "body_too_complex", "unsupported_media_type", "method_not_allowed", "malformed_request",
    }  # fmt: skip


def test_the_error_codes_of_the_table_are_those_that_exist():
    table = read("docs/errors.md")
    codes = {
        code
        for line in table.splitlines()
        if line.startswith("| ")
        for code in re.findall(r"`([a-z_]+)`", line.split("|")[2])
    }
    assert codes - {"code"} == error_codes()


def test_every_statement_is_used():
    sources = [source for package in ("cdb", "cdb_rest", "cdb_web") for source in (ROOT / package).rglob("*.py")]
    used = set(re.findall(r'"(\w+)"', "\n".join(source.read_text() for source in sources)))
    assert set(STATEMENTS) - used == set()


def test_links_between_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_picture_of_the_architecture_has_the_layers_of_the_import_linter():
    contracts = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    [layers] = [one["layers"] for one in contracts if one.get("containers") == ["cdb_rest"]]
    drawn = re.findall(r'^        L\d+\["(.*)"\]$', read("docs/architecture.md"), re.MULTILINE)
    assert [box.split(" · ") for box in drawn] == [layer.split(" | ") for layer in layers]
    assert f"        {' --> '.join(f'L{n}' for n in range(1, len(layers) + 1))}\n" in read("docs/architecture.md")


@pytest.mark.parametrize("package", ["cdb", "cdb_rest", "cdb_web"])
def test_the_architecture_names_every_package(package):
    text = read("docs/architecture.md")
    for init in (ROOT / package).glob("*/__init__.py"):
        assert f"`{init.parent.name}/`" in text


DECLARED = {variable.name: variable for variable in VARIABLES}
# Names that look like settings: of the client, of compose.yaml, of a script, of examples and of nopayloaddb.
OTHER_NAMES = {
    "CDB_ADDRESS", "CDB_AUTH_CLASS", "CDB_CACHE_DIR", "CDB_CONFIG_DIR", "CDB_DATABASE_PASSWORD", "CDB_DEBUG",
    "CDB_IMAGE", "CDB_PAYLOAD_IOVS_QUERY", "CDB_PERMISSION_PLUGIN_CLASS", "CDB_PRIMARY", "CDB_PRIMARY_PORT",
    "CDB_PRIMARY_SQL", "CDB_REPLICATION_PASSWORD", "CDB_SERVER", "CDB_TOKEN", "CDB_TOKEN_FILE", "CDB_TRUSTED_PROXY",
    "CDB_URL", "CDB_VERSION",
}  # fmt: skip
FILES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    ROOT / "compose.yaml",
    ROOT / "Makefile",
    *(file for file in ROOT.glob("deploy/**/*") if file.is_file() and file.suffix != ".pyc"),
]


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_page_is_the_generated_one(name):
    page = reference.PAGES[name]()
    assert (reference.DIRECTORY / name).read_text() == page, "run make reference, and commit the page"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_name_of_a_setting_elsewhere_is_declared(file):
    names = set(re.findall(r"\bCDB_[A-Z][A-Z_]*[A-Z]\b", file.read_text(errors="replace")))
    assert names <= set(DECLARED) | OTHER_NAMES


def test_the_chart_takes_every_setting_and_has_the_declared_number_of_threads():
    chart = ROOT / "deploy" / "helm" / "cdb"
    pattern = json.loads((chart / "values.schema.json").read_text())["properties"]["settings"]["propertyNames"][
        "pattern"
    ]
    # The chart itself connects its parts.
    own = {"DATABASE_URL", "DATABASE_REPLICA_URLS", "PORT"}
    assert {name for name in DECLARED if not re.search(pattern, name)} == own
    assert yaml.safe_load((chart / "values.yaml").read_text())["threads"] == DECLARED["CDB_THREADS"].default


def test_the_application_has_every_setting_by_its_name_and_secrets_only_as_djangos(settings):
    for name in DECLARED:
        is_secret = name in ("CDB_SECRET_KEY", "CDB_MAIL_URL")
        assert hasattr(settings, name) == ((name.startswith("CDB_") and not is_secret) or name == "DEBUG")


# Built once, in one process.
pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", ROOT / "docs", directory]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return directory


def test_every_page_is_in_the_navigation_and_can_be_searched(site):
    index = (site / "index.html").read_text()
    search = (site / "searchindex.js").read_text()
    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")]:
        name = str(page.relative_to(ROOT / "docs").with_suffix(""))
        assert name == "index" or f'href="{name}.html"' in index
        assert f'"{name}"' in search


def test_it_has_the_openapi_description_and_what_displays_it(site):
    assert '"/api/cdb_rest/payloadiovs/": {' in (site / "openapi" / "openapi.js").read_text()
    for name in re.findall(r'"(openapi/[^"]+)"', (site / "openapi.html").read_text()):
        assert (site / name).stat().st_size > 1000
