"""manage.py strategy_indexes: creating, creating again, repairing and dropping."""

import re
from io import StringIO

import pytest
from django.core.management import call_command

from cdb_rest.strategies.indexes import ASCENDING, LOOKUP, MOMENT, complete_indexes, indexes

pytestmark = pytest.mark.django_db(transaction=True)


def run(action):
    out = StringIO()
    call_command("strategy_indexes", action, stdout=out)
    return re.sub(r"\d+\.\d", "N", out.getvalue()).splitlines()


@pytest.fixture(autouse=True)
def _dropped():
    yield
    run("drop")


def test_they_are_made_once_and_dropped_once():
    assert {MOMENT, ASCENDING}.isdisjoint(indexes())
    assert run("create")[-1] == "Indexes created: 2 of 2 (N s)."
    assert {LOOKUP, MOMENT, ASCENDING} <= complete_indexes()
    assert run("create")[-1] == "Indexes created: 0 of 2 (N s)."
    assert run("drop")[-1] == "Indexes dropped: 2 of 2 (N s)."
    assert run("drop")[-1] == "Indexes dropped: 0 of 2 (N s)."
    assert LOOKUP in indexes() and {MOMENT, ASCENDING}.isdisjoint(indexes())
