"""Settings are declared once: the reference page is generated, and nothing else repeats a default or invents a name."""

import json
import re

import pytest
import yaml

from cdb.env import ROOT
from cdb.variables import VARIABLES
from docs.reference import __main__ as reference

DECLARED = {variable.name: variable for variable in VARIABLES}
# Names that look like settings: of compose.yaml, of a script and of examples.
OTHER_NAMES = {
    "CDB_ADDRESS",
    "CDB_DATABASE_PASSWORD",
    "CDB_IMAGE",
    "CDB_PRIMARY",
    "CDB_PRIMARY_PORT",
    "CDB_PRIMARY_SQL",
    "CDB_REPLICATION_PASSWORD",
    "CDB_TRUSTED_PROXY",
    "CDB_URL",
    "CDB_VERSION",
}
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


def test_the_application_has_every_setting_by_its_name_and_the_signing_key_only_as_djangos(settings):
    assert not hasattr(settings, "CDB_SECRET_KEY")
    for name in DECLARED:
        assert hasattr(settings, name) == ((name.startswith("CDB_") and name != "CDB_SECRET_KEY") or name == "DEBUG")
