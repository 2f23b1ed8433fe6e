"""A pytest plugin with two hypothesis profiles: `quick` for the inner loop and `full` for `make test-all`.

It is loaded with ``-p tests.profiles``, before any test module reads how many examples to try.
"""

from hypothesis import settings

# The same examples in every run and on every machine, so that no change is refused by chance. New ones are tried by `make soak`.
settings.register_profile("quick", max_examples=10, deadline=None, derandomize=True)
settings.register_profile("full", max_examples=15, deadline=None, derandomize=True)
settings.load_profile("quick")


def examples(number: int) -> int:
    """How many examples a test tries in the profile in use: `number` for each 100 that the profile has."""
    # The first example is always the simplest one, so that a few are needed.
    return max(5, number * settings.default.max_examples // 100)
