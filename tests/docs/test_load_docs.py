"""What the documentation of the load tests lists is what there is."""

import ast

import pytest

from cdb.env import ROOT
from loadtests.__main__ import CAMPAIGNS
from loadtests.shapes import plans

DOCUMENT = (ROOT / "docs" / "load-tests.md").read_text()


def users():
    """What locust finds in its file, which is read and not imported: that would bring locust into this process."""
    for node in ast.parse((ROOT / "loadtests" / "locustfile.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("loadtests.users."):
            yield from (name.name for name in node.names if name.name[0].isupper() and name.name not in NO_USERS)


NO_USERS = ("CheckedUser", "Iterations")


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_every_campaign_is_in_the_table(campaign):
    assert f"| `{campaign}` |" in DOCUMENT


@pytest.mark.parametrize("user", list(users()))
def test_every_user_is_in_the_table(user):
    assert f"| `{user}` |" in DOCUMENT


@pytest.mark.parametrize("shape", plans.PLANS)
def test_every_shape_is_in_the_table(shape):
    assert f"| `{shape}` |" in DOCUMENT
