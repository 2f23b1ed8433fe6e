"""A pytest plugin with the profile of hypothesis. It is loaded before any test module reads how many examples to try."""

from hypothesis import settings

# The same examples in every run and on every machine, so that no change is refused by chance. New ones are tried by `make soak`.
settings.register_profile("cdb", max_examples=10, deadline=None, derandomize=True)
settings.load_profile("cdb")


def examples(number: int) -> int:
    """How many examples a test tries: `number` for each 100 of the profile."""
    # The first example is always the simplest one, so that a few are needed.
    return max(5, number * settings.default.max_examples // 100)
