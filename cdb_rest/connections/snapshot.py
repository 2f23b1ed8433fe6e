"""Transactions for reads that take longer than a lookup, and for several reads of one state of the database."""

import contextlib
from collections.abc import Iterator

from django.db import connection, transaction

from cdb_rest import named_sql
from cdb_rest.connections import postgresql

SNAPSHOT = named_sql.load("snapshot")
LIMIT_STATEMENT = named_sql.load("limit_statement")


@contextlib.contextmanager
def snapshot() -> Iterator[None]:
    """A read-only transaction, in which all queries see the state of the database at the start of the block.

    In a serving process each query may take `CDB_STATEMENT_TIMEOUT_SECONDS`. The block must not begin inside another
    transaction. Raises `django.db.Error`.
    """
    with transaction.atomic(), _with_long_timeout(SNAPSHOT):
        yield


@contextlib.contextmanager
def long_reads() -> Iterator[None]:
    """A transaction, in which each query of a serving process may take `CDB_STATEMENT_TIMEOUT_SECONDS`.

    It is not a snapshot: each query sees the commits before it. Inside another transaction, the timeout stays until the
    end of that one. Raises `django.db.Error`.
    """
    with transaction.atomic(savepoint=False), _with_long_timeout(LIMIT_STATEMENT):
        yield


@contextlib.contextmanager
def _with_long_timeout(statement: str) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"statement": postgresql.extend()})
    yield
