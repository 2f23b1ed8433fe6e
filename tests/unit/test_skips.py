"""The block at the end of a test run that lists the skipped tests, and `--no-skips`."""

import os
import re
import subprocess
import sys

import pytest

from cdb.env import ROOT

TESTS = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_wants_a_program(number):
    pytest.skip("wrk is missing: apt-get install wrk")

@pytest.mark.skipif(True, reason="only root may mount")
def test_mounts():
    pass

def test_passes():
    pass
"""
MODULE = "import pytest\npytest.skip('no module here', allow_module_level=True)\n"
BLOCK = [
    "    3  wrk is missing: apt-get install wrk",
    "    1  no module here",
    "    1  only root may mount",
]


@pytest.fixture
def play(tmp_path):
    """Runs pytest with the plugin on a text of tests. Returns its exit status and its lines."""

    def run(tests, *arguments):
        (tmp_path / "test_some.py").write_text(tests)
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "xdist.plugin", "-p", "tests.skips", *arguments],
            # The plugins of other packages are slow to load.
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True, text=True,
        )  # fmt: skip
        return ended.returncode, ended.stdout.splitlines()

    return run


def block(lines):
    """The lines below the heading of the block, up to the next heading or the summary."""
    [start] = [number for number, line in enumerate(lines) if re.fullmatch("=+ skipped tests =+", line)]
    following = lines[start + 1 :]
    return following[: next(number for number, line in enumerate(following) if line.startswith("="))]


def test_the_block_counts_each_reason(play, tmp_path):
    (tmp_path / "test_module.py").write_text(MODULE)
    status, lines = play(TESTS)
    assert status == 0
    assert block(lines) == BLOCK


@pytest.mark.parametrize("workers", ["0", "2"])
def test_with_no_skips_a_skipped_test_fails_the_run(play, tmp_path, workers):
    (tmp_path / "test_module.py").write_text(MODULE)
    status, lines = play(TESTS, "--no-skips", "-n", workers)
    assert status == 1
    assert block(lines) == [*BLOCK, "FAILED: --no-skips allows no skipped test (got 5)"]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_with_no_skips_a_run_that_skips_nothing_passes(play, workers):
    status, lines = play("def test_passes():\n    pass\n", "--no-skips", "-n", workers)
    assert status == 0
    assert not [line for line in lines if "skipped tests" in line or "FAILED" in line]


def test_no_skips_keeps_the_status_of_a_run_that_ended_otherwise(play):
    status, _ = play(TESTS, "--no-skips", "-k", "nothing_has_this_name")
    assert status == 5
    failing = TESTS + "\ndef test_fails():\n    raise KeyboardInterrupt\n"
    status, _ = play(failing, "--no-skips")
    assert status == 2


def test_last_failed_repeats_tests_of_groups_as_well(play):
    tests = """
import pytest

@pytest.mark.xdist_group("some")
@pytest.mark.parametrize("name", ["a b", "c@d"])
def test_in_a_group(name):
    assert False

def test_alone():
    assert False

def test_passes():
    pass
"""
    options = ("-n", "2", "--dist", "loadgroup", "-q")
    status, lines = play(tests, *options)
    assert status == 1 and "3 failed, 1 passed" in lines[-1]
    status, lines = play(tests, *options, "--last-failed", "--last-failed-no-failures=none")
    assert status == 1 and "3 failed" in lines[-1] and "passed" not in lines[-1]
