"""The cost of the health checks: no statement, or one query of the short list of migrations."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext


@pytest.mark.parametrize("path", ["/health/live", "/health/live/"])
def test_life_needs_no_database(path):
    """This test has none: pytest refuses every connection."""
    assert Client().get(path).json() == {"status": "live"}


@pytest.mark.django_db
def test_readiness_is_one_statement_on_the_list_of_migrations(build):
    payload_list = build.list(build.tag())
    for start in range(50):
        build.iov(payload_list, (start, 0))
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert Client().get("/health/ready").json() == {"status": "ready"}
    [statement] = [query["sql"] for query in asked]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}")
        [[[explained]]] = cursor.fetchall()
    plan = explained["Plan"]
    assert plan["Relation Name"] == "django_migrations" and "Plans" not in plan
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_migrations")
        assert cursor.fetchone()[0] < 100
