"""The recipes of CONTRIBUTING.md: each is a real diff that applies to this tree, touches few files, and works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cdb.env import ROOT
from tests import programs

RECIPES = Path(__file__).parent
# The largest number of files that each recipe may touch, without the pages that `make reference` writes.
MOST_FILES = {"endpoint": 4, "iov_column": 6, "setting": 2, "error": 1}
GENERATED = {"docs/settings.md", "docs/errors.md"}


@pytest.fixture
def recipe(tmp_path):
    """Applies a recipe to a copy of the files that git tracks, where it keeps the style; `run` executes Python in there."""

    class Recipe:
        directory = tmp_path

        def __init__(self, name):
            tracked = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
            for file in filter(lambda name: (ROOT / name).is_file(), filter(None, tracked)):
                (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / file, tmp_path / file)
            diff = RECIPES / f"{name}.diff"
            self.files = re.findall(r"^\+\+\+ b/(.*)$", diff.read_text(), re.MULTILINE)
            # Without a repository above it, git takes paths as they stand in the diff.
            _git("apply", "--whitespace=error", str(diff), cwd=tmp_path, GIT_CEILING_DIRECTORIES=str(tmp_path.parent))
            assert len(set(self.files) - GENERATED) <= MOST_FILES[name]
            python = [file for file in self.files if file.endswith(".py")]
            self.run("-m", "ruff", "check", *python)
            self.run("-m", "ruff", "format", "--check", *python)
            self.run("-m", "docs.reference", "--check")
            assert f"tests/recipes/{name}.diff" in (ROOT / "CONTRIBUTING.md").read_text()

        def run(self, *arguments, **settings):
            done = subprocess.run(
                [sys.executable, *arguments],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                env={"PATH": os.environ["PATH"], "CDB_ENV_FILE": os.devnull} | settings,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

    return Recipe


def _git(*arguments, cwd, **variables):
    programs.require("git")
    # The clone may belong to another account than the one that runs the tests.
    command = ["git", "-c", "safe.directory=*", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=os.environ | variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


PRINT_TABLE = """
import django; django.setup()
from cdb_rest.management.output import table
print(table(["n"], [[str(n)] for n in range(50)]).splitlines()[-1])
"""


def test_the_setting_of_the_recipe_works(recipe):
    applied = recipe("setting")
    for settings, last in (({}, "and 10 more"), ({"CDB_TABLE_ROWS": "45"}, "and 5 more")):
        shown = applied.run("-c", PRINT_TABLE, DJANGO_SETTINGS_MODULE="cdb.settings", **settings)
        assert shown.splitlines() == [last]


RESPOND = """
import django; django.setup()
from cdb_rest.api.base.errors import respond
from cdb_rest.rules.errors import GlobalTagClosedError
status, _, body = respond(GlobalTagClosedError("Closed."))
print(status, body.decode())
"""


def test_the_error_of_the_recipe_has_its_status_and_code(recipe):
    shown = recipe("error").run("-c", RESPOND, DJANGO_SETTINGS_MODULE="cdb.settings")
    assert shown == '409 {"detail":"Closed.","code":"global_tag_closed"}\n'


def test_the_endpoint_of_the_recipe_is_described_budgeted_and_cached(recipe):
    applied = recipe("endpoint")
    tests = [
        "api/test_contract_global_tags.py",
        "api/test_query_budgets.py",
        "api/test_description.py",
        "docs/test_docs.py",
    ]
    found = applied.run("-m", "pytest", "-q", "-k", "types", *(f"tests/{test}" for test in tests))
    assert "passed" in found
    nginx = applied.run("-c", "from cdb.serving import nginx; print(nginx.of_serve())")
    assert '"~^(GET|HEAD):/api/cdb_rest/global-tags/[^/]+/payload-types/?$" lookups;' in nginx
    assert '"~^(GET|HEAD):/api/cdb_rest/global-tags/[^/]+/payload-types/?$" cdb;' in nginx


ORIGIN = """
import pytest

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_iov_keeps_its_origin(api, build):
    build.list(build.tag())
    row = {"global_tag": "tag", "payload_type": "Gain", "payload_url": "a", "checksum": "", "origin": "survey"}
    api.post("payload-iovs/insert", row | {"since": [0, 0], "until": [9, 0]}).ok()
    api.post("payload-iovs/insert", row | {"payload_url": "b", "origin": "", "since": [3, 0], "until": [4, 0]}).ok()
    api.post("cloneGlobalTag/tag/copy", None).ok()
    for tag in ("tag", "copy"):
        [payload_list] = api.get(f"globalTag/{tag}").ok()["payload_lists"]
        assert [iov["origin"] for iov in payload_list["payload_iov"]] == ["survey", "", "survey"]
    change = api.get("global-tags/tag/changes/1").ok()
    assert [iov["origin"] for iov in change["after"]["payload_iovs"]] == ["survey"]
"""


def test_the_column_of_the_recipe_is_kept_wherever_its_row_goes(recipe):
    applied = recipe("iov_column")
    applied.run("-m", "tests.migrations.records")
    (applied.directory / "tests" / "api" / "test_origin.py").write_text(ORIGIN)
    tests = [
        "api/test_origin.py",
        "api/test_contract_payload_iovs.py",
        "api/test_description.py",
        "migrations/test_upgrade.py",
    ]
    found = applied.run("-m", "pytest", "-q", "-k", "iov or edited", *(f"tests/{test}" for test in tests))
    assert "passed" in found
