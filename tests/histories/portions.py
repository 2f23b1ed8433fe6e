"""Random histories in small portions, until enough was seen."""

from collections import Counter
from collections.abc import Callable
from itertools import count

from hypothesis import seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.histories.judge import played
from tests.profiles import seed_of_round


def play_until(
    enough: Callable[[Counter], bool], machine: type[RuleBasedStateMachine], portion: settings, *, most_steps: int
) -> None:
    """Play portions of histories until `enough` says so of the counts of all of them; fails after `most_steps` steps."""
    begin = Counter(played)
    for number in count():
        seen = played - begin
        if enough(seen):
            return
        assert seen["steps"] < most_steps, seen
        # Without a seed of its own, each portion would be the first one again wherever examples do not depend on chance.
        run_state_machine_as_test(seed(seed_of_round(number))(machine), settings=portion)
