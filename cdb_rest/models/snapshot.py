"""Several reads of one state of the database."""

import contextlib
from collections.abc import Iterator

from django.db import connection, transaction

from cdb_rest import named_sql

SNAPSHOT = named_sql.load("snapshot")


@contextlib.contextmanager
def snapshot() -> Iterator[None]:
    """All queries inside the block see the database as it is at the first of them; none of them may write."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(SNAPSHOT)
        yield
