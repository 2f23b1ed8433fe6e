"""Settings are declared once: the reference page is generated, and nothing else repeats a default or invents a name."""

import json
import re

import pytest
import yaml

from cdb import env
from cdb.env import ROOT
from cdb.variables import VARIABLES
from docs.reference import __main__ as reference
from docs.reference import settings

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


def test_the_check_tells_an_outdated_page_from_a_current_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reference, "DIRECTORY", tmp_path)
    assert reference.main(["--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"docs/{name} is out of date: run make reference, and commit it" for name in reference.PAGES
    ]
    assert reference.main([]) == 0 and reference.main(["--check"]) == 0
    page = tmp_path / "settings.md"
    page.write_text(page.read_text().replace("8000", "8001"))
    assert reference.main(["--check"]) == 1


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_every_meaning_is_one_sentence_with_links_that_lead_somewhere(variable):
    assert re.fullmatch(r"[A-Zg\[].*[^.]\.", variable.meaning) and not re.search(r"\. [A-Z]", variable.meaning)
    for file, anchor in re.findall(r"\]\(([^)#]+)#([^)]+)\)", variable.meaning):
        headings = re.findall(r"^#+ (.*)", (ROOT / "docs" / file).read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_the_default_of_the_page_read_from_the_environment_is_the_declared_one(variable, monkeypatch):
    monkeypatch.setattr(env.os, "environ", {"CDB_ENV_FILE": "/dev/null"})
    declared = env.read.__wrapped__()[variable.name]
    default = settings.default_of(variable)
    if variable.name != "CDB_ENV_FILE":
        monkeypatch.setattr(env.os, "environ", {"CDB_ENV_FILE": "/dev/null", variable.name: default})
        assert env.read.__wrapped__()[variable.name] == declared
    [row] = [line for line in settings.page().splitlines() if line.startswith(f"| `{variable.name}` |")]
    assert row.split(" | ")[2].strip() == (variable.default_text or (f"`{default}`" if default else ""))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_name_of_a_setting_elsewhere_is_declared(file):
    names = set(re.findall(r"\bCDB_[A-Z][A-Z_]*[A-Z]\b", file.read_text(errors="replace")))
    assert names <= set(DECLARED) | OTHER_NAMES


def test_compose_repeats_no_default():
    given = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", (ROOT / "compose.yaml").read_text()))
    repeated = {
        name: default
        for name, default in given.items()
        if name in DECLARED and name != "PORT" and default == settings.default_of(DECLARED[name])
    }
    assert {name: default for name, default in repeated.items() if default} == {}
    # What is published on the host has to be a number there.
    assert given["PORT"] == settings.default_of(DECLARED["PORT"])


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
