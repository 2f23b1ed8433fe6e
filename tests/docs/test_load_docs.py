"""What the documentation of the load tests lists is what there is."""

import ast

import pytest

from cdb.env import ROOT
from loadtests.__main__ import CAMPAIGNS

DOCUMENT = (ROOT / "docs" / "load-tests.md").read_text()


def classes_in(directory, base_ending):
    """Classes that others can choose, by reading their source: importing them would bring locust into this process."""
    for file in sorted((ROOT / "loadtests" / directory).glob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and any(ast.unparse(one).endswith(base_ending) for one in node.bases):
                yield node.name


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_every_campaign_is_in_the_table(campaign):
    assert f"| `{campaign}` |" in DOCUMENT
