"""Reads that take longer than a lookup, and several reads of one state of the database."""

import contextlib
from collections.abc import Iterator

from django.db import connection, transaction

from cdb_rest import named_sql
from cdb_rest.connections import deadlines

SNAPSHOT = named_sql.load("snapshot")
LIMIT_STATEMENT = named_sql.load("limit_statement")


@contextlib.contextmanager
def snapshot() -> Iterator[None]:
    """All queries inside the block see the database as it is at the first of them; none of them may write.

    In the serving process each may take `CDB_STATEMENT_TIMEOUT_SECONDS`.
    """
    with transaction.atomic(), _heavy(SNAPSHOT):
        yield


@contextlib.contextmanager
def unhurried() -> Iterator[None]:
    """Queries inside the block may take `CDB_STATEMENT_TIMEOUT_SECONDS` in the serving process, not only a lookup's time."""
    with transaction.atomic(savepoint=False), _heavy(LIMIT_STATEMENT):
        yield


@contextlib.contextmanager
def _heavy(statement: str) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"statement": deadlines.heavy_milliseconds()})
    deadlines.extend()
    yield
