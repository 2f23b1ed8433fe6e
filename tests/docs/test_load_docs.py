"""Lists in the documentation of the load tests are complete and contain nothing that does not exist."""

import ast
import re

import pytest

from cdb.env import ROOT
from loadtests.campaign import DIRECTORY as CAMPAIGNS

DOCUMENT = (ROOT / "docs" / "load-tests.md").read_text()


def imported(module):
    """What locust finds in its file, which is read and not imported: that would bring locust into this process."""
    for node in ast.parse((ROOT / "loadtests" / "locustfile.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith(module):
            yield from (name.name for name in node.names if name.name[0].isupper() and name.name not in OTHERS)


OTHERS = ("CheckedUser", "Subject", "SHAPES")


@pytest.mark.parametrize("campaign", [file.stem for file in CAMPAIGNS.glob("*.toml")])
def test_every_campaign_is_in_the_table(campaign):
    assert f"| `{campaign}` |" in DOCUMENT


@pytest.mark.parametrize("user", list(imported("loadtests.users.")))
def test_every_user_is_in_the_table(user):
    assert f"| `{user}` |" in DOCUMENT


@pytest.mark.parametrize("shape", list(imported("loadtests.shapes")))
def test_every_shape_is_in_the_table(shape):
    assert f"| `{re.sub('(?<=.)(?=[A-Z])', '-', shape).lower()}` |" in DOCUMENT
