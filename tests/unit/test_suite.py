"""The test suite itself: `make test` and `make test-all` together run every folder of tests."""

import tomllib

from cdb.env import ROOT

SLOW = {"tests/e2e", "tests/loadtests", "tests/packaging"}


def test_every_folder_is_quick_or_slow():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    folders = {f"tests/{file.parent.relative_to(ROOT / 'tests')}" for file in (ROOT / "tests").rglob("test_*.py")}
    assert folders == SLOW | set(options["testpaths"])
