"""Transactions for reads that take longer than a lookup, and for several reads of one state of the database."""

import contextlib
from collections.abc import Iterator

from django.db import connection, transaction

from cdb_rest import named_sql
from cdb_rest.connections import deadlines

SNAPSHOT = named_sql.load("snapshot")
LIMIT_STATEMENT = named_sql.load("limit_statement")


@contextlib.contextmanager
def snapshot() -> Iterator[None]:
    """All queries inside the block see the database as of the first one; the transaction is read-only.

    In a serving process each query may take `CDB_STATEMENT_TIMEOUT_SECONDS`.
    """
    with transaction.atomic(), _with_long_timeout(SNAPSHOT):
        yield


@contextlib.contextmanager
def long_reads() -> Iterator[None]:
    """In a serving process, queries inside the block may take `CDB_STATEMENT_TIMEOUT_SECONDS`, longer than a lookup."""
    with transaction.atomic(savepoint=False), _with_long_timeout(LIMIT_STATEMENT):
        yield


@contextlib.contextmanager
def _with_long_timeout(statement: str) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"statement": deadlines.statement_timeout()})
    deadlines.extend()
    yield
