"""`--last-failed` after a run in groups."""


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
