"""The plans of statements, as EXPLAIN (FORMAT JSON) writes them, and tables that are ready for them."""

import time
from collections.abc import Iterator
from typing import Any

from django.db import connection

SECONDS = 60


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All nodes of a plan."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def vacuum(*tables: str) -> None:
    """Vacuum and analyze tables until all of their pages are marked as visible, so that an index-only scan reads no table.

    Rows are not marked as long as another transaction may not see them. Such a one can be PostgreSQL's own: its autovacuum
    analyzes tables that were filled a moment ago.
    """
    deadline = time.monotonic() + SECONDS
    with connection.cursor() as cursor:
        for table in tables:
            # An index keeps the pages of the rows of earlier tests, and the planner prefers the table to a large index.
            cursor.execute(f'REINDEX TABLE "{table}"')
        while True:
            # Without the cleanup of indexes, a page with a few removed rows is not marked.
            cursor.execute("VACUUM (ANALYZE, INDEX_CLEANUP on) " + ", ".join(f'"{table}"' for table in tables))
            cursor.execute(
                "SELECT count(*) FROM pg_class WHERE relname = ANY(%s) AND relkind = 'r' AND relallvisible < relpages",
                [list(tables)],
            )
            if cursor.fetchone() == (0,):
                return
            assert time.monotonic() < deadline, f"another transaction keeps rows of {tables} from being visible"
            time.sleep(0.1)
