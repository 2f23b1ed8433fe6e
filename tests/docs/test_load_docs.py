"""Lists in the documentation of the load tests are complete and contain nothing that does not exist."""

import ast
import re

import pytest

from cdb.env import ROOT
from loadtests.__main__ import CAMPAIGNS

STUDY = "https://doi.org/10.1051/epjconf/202429501051"
DOCUMENT = (ROOT / "docs" / "load-test-fields.md").read_text()


def guide():
    return (ROOT / "docs" / "load-tests.md").read_text()


def imported(module):
    """What locust finds in its file, which is read and not imported: that would bring locust into this process."""
    for node in ast.parse((ROOT / "loadtests" / "locustfile.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith(module):
            yield from (name.name for name in node.names if name.name[0].isupper() and name.name not in OTHERS)


OTHERS = ("CheckedUser", "Subject", "SHAPES")


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_every_campaign_is_in_the_table(campaign):
    assert f"| `{campaign}` |" in DOCUMENT


@pytest.mark.parametrize("user", list(imported("loadtests.users.")))
def test_every_user_is_in_the_table(user):
    assert f"| `{user}` |" in DOCUMENT


@pytest.mark.parametrize("shape", list(imported("loadtests.shapes")))
def test_every_shape_is_in_the_table(shape):
    assert f"| `{re.sub('(?<=.)(?=[A-Z])', '-', shape).lower()}` |" in DOCUMENT


def test_the_load_study_is_cited_in_one_place_and_the_others_refer_to_it():
    texts = {path: " ".join(path.read_text().split()) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]}
    del texts[ROOT / "CHANGELOG.md"]
    assert [path.name for path, text in texts.items() if STUDY in text] == ["load-tests.md"]
    assert "\n## The load study\n" in guide()
    for path, text in texts.items():
        assert "published study" not in text, path
        assert "load study" not in text or re.search(r"\[load study\]\([./a-z-]*#the-load-study\)", text), path


@pytest.mark.parametrize("package", ["cdb_rest", "loadtests", "sql"])
def test_sources_that_name_the_load_study_say_where_it_is_cited(package):
    for path in [*(ROOT / package).rglob("*.py"), *(ROOT / package).rglob("*.sql")]:
        text = " ".join(path.read_text().split())
        assert "published study" not in text and "published performance study" not in text, path
        assert "load study" not in text or "docs/load-tests.md" in text, path
