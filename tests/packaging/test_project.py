"""The files about the project itself: license, changelog, and the checks before a commit."""

import importlib.metadata
import re
import tomllib

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from cdb.env import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_each_pinned_package_runs_on_the_oldest_python():
    assert PROJECT["requires-python"] == ">=3.11"
    # That of Debian 12; later packages sometimes need a later patch release.
    oldest = "3.11.2"
    pinned = re.findall(r"^[^\s#].*?==[^\s]+", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
    names = [Requirement(line).name for line in pinned]
    assert len(names) > 100
    needs = {name: importlib.metadata.metadata(name)["Requires-Python"] or "" for name in names}
    assert [name for name, python in needs.items() if not SpecifierSet(python).contains(oldest)] == []
