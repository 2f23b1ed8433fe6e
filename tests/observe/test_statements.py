"""The request id in a comment of each SQL statement: it cannot end the comment, and changes no result."""

import re

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from cdb_rest.connections.postgresql import _named
from cdb_rest.exports.copy_out import stream_copy
from cdb_rest.observe.request_context import RequestContext, current_context


class Cursor:
    """Gives back what it was asked."""

    execute = _named(lambda self, statement, parameters=None: (statement, parameters))


@pytest.fixture(autouse=True)
def _no_request():
    current_context.set(None)
    yield
    current_context.set(None)


def of_request(request_id):
    context = RequestContext({"HTTP_X_REQUEST_ID": request_id})
    current_context.set(context)
    return context


def test_a_statement_has_the_id_of_its_request():
    assert Cursor().execute("SELECT 1", [1]) == ("SELECT 1", [1])
    of_request("job-7")
    assert Cursor().execute("SELECT 1", [1]) == ("/*request_id=job-7*/ SELECT 1", [1])
    assert Cursor().execute(b"SELECT 1") == (b"/*request_id=job-7*/ SELECT 1", None)


@pytest.mark.parametrize(
    ("name", "comment"),
    [
        ("token:robot", "token:robot"),
        ("exp:alice@example.org", "exp:alice@example.org"),
        ("*/ DROP TABLE x; --", "___DROP_TABLE_x__--"),
        ("100%s", "100_s"),
        ("\u00e9" * 200, "_" * 100),
    ],
)
def test_a_statement_names_the_actor_who_is_identified(name, comment):
    context = of_request("job-7")
    context.identify("127.0.0.1", is_known=False)
    assert Cursor().execute("SELECT 1")[0] == "/*request_id=job-7*/ SELECT 1"
    context.identify(name, is_known=True)
    assert Cursor().execute("SELECT 1")[0] == f"/*request_id=job-7 actor={comment}*/ SELECT 1"


@given(st.text(max_size=70) | st.from_regex(r"[A-Za-z0-9._*/%-]{1,66}"))
def test_no_id_gets_out_of_its_comment(claimed):
    of_request(claimed)
    statement, _ = Cursor().execute("SELECT 1")
    assert re.fullmatch(r"/\*request_id=[A-Za-z0-9][A-Za-z0-9._-]{0,63}\*/ SELECT 1", statement, re.ASCII)


@pytest.mark.django_db
def test_a_statement_does_not_depend_on_the_client():
    """PostgreSQL's identifier of a statement is what pg_stat_statements counts by."""
    found = set()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL compute_query_id = on")
        for number in range(3):
            of_request(f"job-{number}")
            statement, _ = Cursor().execute('EXPLAIN (VERBOSE) SELECT name FROM "GlobalTag" WHERE id = %s')
            cursor.execute(statement, [number])
            found.add(cursor.fetchall()[-1])
    assert len(found) == 1 and "Query Identifier" in found.pop()[0]


@pytest.mark.django_db(transaction=True)
def test_a_copy_works_for_the_request_that_asked_for_it(monkeypatch):
    of_request("job-7")
    seen = []
    monkeypatch.setattr(
        "cdb_rest.exports.copy_out._ChunkQueue.write",
        lambda self, piece: seen.append(current_context.get().request_id) or len(piece),
    )
    connection.ensure_connection()
    with stream_copy("COPY (SELECT 1) TO STDOUT", {}) as pieces:
        list(pieces)
    assert seen == ["job-7"]
