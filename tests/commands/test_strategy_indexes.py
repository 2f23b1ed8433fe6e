"""manage.py strategy_indexes: creating, creating again, repairing and dropping."""

import re
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection

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
    assert run("create") == [
        f"{MOMENT} created in N s: N MiB.",
        f"{ASCENDING} created in N s: N MiB.",
        "Indexes created: 2 of 2 (N s).",
    ]
    assert {LOOKUP, MOMENT, ASCENDING} <= complete_indexes()
    assert run("create") == [
        f"{MOMENT} already exists: N MiB.",
        f"{ASCENDING} already exists: N MiB.",
        "Indexes created: 0 of 2 (N s).",
    ]
    assert run("drop") == [
        f"{MOMENT} dropped in N s: N MiB freed.",
        f"{ASCENDING} dropped in N s: N MiB freed.",
        "Indexes dropped: 2 of 2 (N s).",
    ]
    assert run("drop") == [
        f"{MOMENT} does not exist.",
        f"{ASCENDING} does not exist.",
        "Indexes dropped: 0 of 2 (N s).",
    ]
    assert LOOKUP in indexes()


def test_a_half_built_one_is_replaced(build):
    # Two detached rows with one URL make a unique index fail half way, which leaves what an interruption leaves.
    build.iov(None, (0, 0), url="same")
    build.iov(None, (1, 0), url="same")
    with connection.cursor() as cursor, pytest.raises(IntegrityError):
        cursor.execute(f'CREATE UNIQUE INDEX CONCURRENTLY {MOMENT} ON "PayloadIOV" (payload_url)')
    assert not indexes()[MOMENT].is_complete
    assert MOMENT not in complete_indexes()
    assert run("create")[:2] == [f"{MOMENT} is incomplete and is created again.", f"{MOMENT} created in N s: N MiB."]
    assert indexes()[MOMENT].is_complete
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = %s", [MOMENT])
        assert cursor.fetchone()[0].endswith("(payload_list_id, major_iov DESC, minor_iov DESC)")
