"""Random histories of every write: at least 200 steps over all worlds."""

import pytest
from hypothesis import HealthCheck, settings

from tests.histories.machine import WORLDS
from tests.histories.portions import play_until
from tests.profiles import examples

STEPS = examples(2000)
MOST_STEPS = 5000
# Histories of up to fifty steps in small portions, until there are enough.
PORTION = settings(max_examples=5, stateful_step_count=max(20, examples(50)), suppress_health_check=list(HealthCheck))


@pytest.mark.django_db
@pytest.mark.parametrize("world", WORLDS)
def test_every_history_agrees_with_the_oracle(world, settings):
    machine, settings.CDB_IOV_MODE = WORLDS[world]
    play_until(lambda seen: seen["steps"] >= STEPS / len(WORLDS), machine, PORTION, most_steps=MOST_STEPS)
