"""The block at the end of a test run that lists the skipped tests, and `--no-skips`."""

import re

import pytest

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
