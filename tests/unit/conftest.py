"""Fixtures for tests of pytest plugins."""

import os
import subprocess
import sys

import pytest

from cdb.env import ROOT


@pytest.fixture
def play(tmp_path):
    """Runs pytest with our plugins on a text of tests. Returns its exit status and its lines."""

    def run(tests, *arguments):
        (tmp_path / "test_some.py").write_text(tests)
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "xdist.plugin",
                "-p",
                "tests.skips",
                "-p",
                "tests.last_failed",
                *arguments,
            ],
            # The plugins of other packages are slow to load.
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
        )
        return ended.returncode, ended.stdout.splitlines()

    return run
