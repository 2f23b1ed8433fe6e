"""Random histories of every write, and concurrent writers in one process; tests/e2e has them against several processes."""

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings

from cdb_rest.maintenance.repair import find_faults
from tests.conftest import Api
from tests.histories.machine import WORLDS, play_until
from tests.histories.race_proof import RaceProof
from tests.histories.writers import Race
from tests.profiles import examples, of_soak, seed_of_round

STEPS = examples(800)
MOST_STEPS = 5000
# Histories of up to fifty steps in small portions, until there are enough.
PORTION = settings(max_examples=5, stateful_step_count=max(20, examples(50)), suppress_health_check=list(HealthCheck))


@pytest.mark.django_db
@pytest.mark.parametrize("world", ["small-continuous", "full-discrete", *of_soak("small-discrete", "full-continuous")])
def test_every_history_agrees_with_the_oracle(world, settings):
    machine, settings.CDB_IOV_MODE = WORLDS[world]

    def enough(seen):
        rare = ("rows sent again", "clearings", "clones of the past", "accepted for locked tags")
        return seen["steps"] >= STEPS / len(WORLDS) and all(seen[name] for name in rare)

    play_until(enough, machine, PORTION, most_steps=MOST_STEPS)


pytestmark = pytest.mark.django_db(transaction=True)
WRITERS = 20


class Connection:
    """A client inside of this process, with the database connection of its thread."""

    def __init__(self):
        self._api = Api()

    def call(self, method, path, body, headers):
        answer = self._api(method, path, body, **headers)
        return answer.status, answer.json

    def close(self):
        connection.close()


@pytest.mark.parametrize(("tags", "mode"), [(3, "continuous"), (2, "discrete"), *of_soak((1, "continuous"))])
def test_writers_at_the_same_time_leave_what_some_order_of_them_leaves(settings, tags, mode):
    settings.CDB_IOV_MODE = mode
    race = Race(Connection, seed=seed_of_round(tags), tags=tags, discrete=mode == "discrete")
    race.run(writers=WRITERS, writes_each=8)
    assert RaceProof(race, Connection()).verify() > WRITERS * 2
    assert find_faults() == []
    assert set(race.statuses) <= {200, 404, 409}
