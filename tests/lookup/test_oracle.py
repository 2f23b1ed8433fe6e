"""Random tags and moments with each strategy, compared with a model in plain Python; the routes of strategies."""

import json
import os
import subprocess
import sys

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb.env import ROOT
from cdb_rest.api.urls import STRATEGY_ROUTES, view_of
from cdb_rest.lookup.model import COLUMNS, LookupQuery
from cdb_rest.rules.moment import OPEN, Mode, Moment
from cdb_rest.strategies import implementations
from cdb_rest.strategies.registry import STRATEGIES
from tests.builders import Builder
from tests.conftest import PREFIX
from tests.profiles import examples

pytestmark = pytest.mark.django_db

# Small numbers collide often; the others sit where 64 bits, 32 bits or a rounded decimal would give way.
NUMBERS = st.one_of(
    st.integers(0, 6),
    st.sampled_from(
        [10**9, 10**9 + 1, 2**31 - 1, 2**31, 1_700_000_000, 10**18, 2**53, 2**53 + 1, OPEN - 2, OPEN - 1, OPEN]
    ),
    st.integers(0, OPEN),
)
MOMENTS = st.tuples(NUMBERS, NUMBERS)


@st.composite
def intervals(draw):
    start, end = sorted([draw(MOMENTS), draw(st.one_of(MOMENTS, st.just((OPEN, OPEN))))])
    return start, end


# For each payload type its rows: start, end and revision, no two with one start.
LISTS = st.lists(
    st.lists(
        st.tuples(intervals(), st.one_of(st.none(), st.integers(0, OPEN).map(str))),
        max_size=8,
        unique_by=lambda row: row[0][0],
    ),
    max_size=4,
)
TYPE_NAMES = ["Gain", "Zeta", "alpha", "Élan"]


def expected(lists, moment, only_valid, mode):
    """The naive model: look at every row of every list."""
    answer = []
    for name, rows in zip(TYPE_NAMES, lists, strict=False):
        started = [(start, end, revision) for (start, end), revision in rows if start <= moment]
        if not started:
            continue
        start, end, revision = max(started)
        inside = end == (OPEN, OPEN) or moment < end or (mode is Mode.DISCRETE and moment == end)
        if inside or not only_valid:
            answer.append([name, f"{name}@{start}", "sum", 7, *start, *end, revision])
    return sorted(answer, key=lambda row: row[0].encode())


def moments_of_interest(lists):
    """Every start and end, the moments beside them, and the first and last of all."""
    found = {(0, 0), (OPEN, OPEN)}
    for rows in lists:
        for (start, end), _ in rows:
            for major, minor in (start, end):
                found |= {(major, minor), (major, max(minor - 1, 0)), (major, min(minor + 1, OPEN))}
    return sorted(found)


CASES = {
    "lists": LISTS,
    "extra": MOMENTS,
    "only_valid": st.booleans(),
    "as_objects": st.booleans(),
    "mode": st.sampled_from(Mode),
}


@settings(max_examples=examples(60))
@given(**CASES)
def test_every_way_to_answer_agrees_with_the_model(lists, extra, only_valid, as_objects, mode):
    hold_against_the_model(lists, extra, only_valid, as_objects, mode)


@pytest.mark.django_db(transaction=True)
@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(**CASES)
def test_answers_do_not_depend_on_the_indexes_for_comparison(
    strategy_indexes, lists, extra, only_valid, as_objects, mode
):
    # Tables as small as these would be read without any index.
    hold_against_the_model(lists, extra, only_valid, as_objects, mode, off=("seqscan", "bitmapscan", "sort"))


def hold_against_the_model(lists, extra, only_valid, as_objects, mode, off=()):
    with transaction.atomic():
        build = Builder()
        tag = build.tag()
        decoy = build.tag("decoy")
        for name, rows in zip(TYPE_NAMES, lists, strict=False):
            payload_list, other = build.list(tag, name), build.list(decoy, name)
            for (start, end), revision in rows:
                build.iov(payload_list, start, end, url=f"{name}@{start}", checksum="sum", size=7, extra=revision)
                build.iov(other, start, end, url="decoy")
        with connection.cursor() as cursor:
            for kind in off:
                cursor.execute(f"SET LOCAL enable_{kind} = off")
        for moment in [*moments_of_interest(lists), extra]:
            query = LookupQuery("tag", Moment(*moment), only_valid, as_objects, mode)
            model = expected(lists, moment, only_valid, mode)
            if as_objects:
                model = [dict(zip(COLUMNS, row, strict=True)) for row in model]
            for strategy in STRATEGIES.values():
                assert json.loads(strategy.run(query)) == model, strategy.name
            assert json.loads(implementations.look_up_by_statement(query)) == model
        transaction.set_rollback(True)


PATHS = [path for route in STRATEGY_ROUTES for path in route.paths]


@pytest.mark.parametrize(
    ("variables", "served"),
    [
        ({"CDB_STRATEGIES": "1"}, True),
        ({"DEBUG": "1"}, True),
        ({"DEBUG": "1", "CDB_STRATEGIES": "0"}, False),
    ],
)
def test_the_setting_and_debug_serve_them(variables, served):
    look = (
        "import django; django.setup(); from django.urls import resolve; "
        f"served = [resolve({PREFIX!r} + path).func for path in {PATHS!r}]; "
        "print([getattr(view, 'cls', view).__name__ for view in served])"
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "cdb.settings"} | variables
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    names = [view_of(route).__name__ for route in STRATEGY_ROUTES] if served else ["route_not_found"] * len(PATHS)
    assert done.stdout.strip() == str(names)
