"""A pytest plugin with the profiles of hypothesis. It is loaded before any test module reads how many examples to try."""

import os

from hypothesis import settings

# The same examples in every run and on every machine, so that no change is refused by chance. New ones are tried by `make soak`.
settings.register_profile("cdb", max_examples=10, deadline=None, derandomize=True)
# For `make soak`, which gives each round a seed of its own.
settings.register_profile("soak", max_examples=30, deadline=None, database=None)
settings.load_profile("cdb")


def examples(number: int) -> int:
    """How many examples a test tries: `number` for each 100 of the profile."""
    # The first example is always the simplest one, so that a few are needed.
    return max(4, number * settings.default.max_examples // 100)


def of_soak(*cases: object) -> tuple[object, ...]:
    """Cases of a parameter that `make soak` plays, and other runs do not."""
    return cases if "SOAK_SEED" in os.environ else ()


def seed_of_round(number: int) -> int:
    """A seed for random choices without hypothesis: `number`, or in a round of `make soak` another one."""
    # tests/postgres.py deletes variables of the service, whose names begin with CDB_.
    return number + 1000 * int(os.environ.get("SOAK_SEED", "0"))
