"""Compiled lists in random histories, and beside concurrent writers: no lookup differs from that of PostgreSQL."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.compiled.registry import registry
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.moment import Mode
from tests.histories.race_proof import RaceProof
from tests.histories.steps import TYPES, clear
from tests.histories.test_histories import Connection
from tests.histories.test_past_reads import STEPS, TAGS, play_more
from tests.histories.writers import GRID, Race
from tests.lookup.compiling import (
    compile_and_open,
    compiling_beside,
    damage,
    delete_compiled,
    kinds,
    same_as_postgresql,
)
from tests.profiles import examples, of_soak

pytestmark = pytest.mark.django_db(transaction=True)
REVISIONS = st.one_of(st.none(), st.integers(1, 10))
COMPILATION = st.tuples(st.just("compile"), st.sampled_from(TAGS), REVISIONS)
DAMAGE = st.tuples(st.just("damage"), st.integers(0, 10**6))


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.one_of(STEPS, STEPS, COMPILATION, DAMAGE), min_size=10, max_size=30))
def test_random_histories(api, compiled_tags, steps):
    clear()
    delete_compiled()
    for kind in TYPES:
        api.post("pt", {"name": kind})
    api.post("gt", {"name": "a", "status": "unlocked"}).ok()
    for number, step in enumerate(steps):
        match step:
            case "compile", tag, revision:
                compile_and_open(tag, revision)
            case "damage", seed:
                damage(random.Random(seed))
                registry.refresh()
            case _:
                play_more(api, step)
        for tag in TAGS:
            same_as_postgresql(tag, (number % 5, 0))
            same_as_postgresql(tag, (number % 5, 0), as_of=AsOf(revision=1 + number % 10))


@pytest.mark.parametrize("mode", [Mode.DISCRETE, *of_soak(Mode.CONTINUOUS)])
def test_concurrent_writers(compiled_tags, settings, mode):
    settings.CDB_IOV_MODE = mode
    before = kinds()
    race = Race(Connection, seed=7, tags=2, discrete=mode is Mode.DISCRETE)
    with compiling_beside(race, GRID, mode, seed=7):
        race.run(writers=8, writes_each=15)
    assert RaceProof(race, Connection()).verify() > 0
    # How many, and in which ways, depends on the order of the threads.
    assert (kinds() - before).total() > 0
