"""The indexes that some strategies need in addition to the lookup's index.

Operators create and drop them by a command, because the service itself does not use them.
"""

from dataclasses import dataclass

from django.db import connection

from cdb_rest import named_sql

LOOKUP = "payload_iov_lookup"
MOMENT = "payload_iov_strategy_moment"
ASCENDING = "payload_iov_strategy_ascending"
INDEXES = named_sql.load("payload_iov_indexes")
CREATE = {
    MOMENT: named_sql.load("create_strategy_moment_index"),
    ASCENDING: named_sql.load("create_strategy_ascending_index"),
}
DROP = {
    MOMENT: named_sql.load("drop_strategy_moment_index"),
    ASCENDING: named_sql.load("drop_strategy_ascending_index"),
}


@dataclass(frozen=True, slots=True)
class Index:
    """An index of the table PayloadIOV: its size in bytes, and whether it is complete or being built.

    An index that is neither was left by an interrupted creation.
    """

    size: int
    is_complete: bool
    is_being_built: bool


def indexes() -> dict[str, Index]:
    """All indexes of the table PayloadIOV by name."""
    with connection.cursor() as cursor:
        cursor.execute(INDEXES)
        return {name: Index(*facts) for name, *facts in cursor.fetchall()}


def complete_indexes() -> set[str]:
    """The names of the indexes that queries can use."""
    return {name for name, index in indexes().items() if index.is_complete}


def create(name: str) -> None:
    """Create the index `name`, a key of `CREATE`, without blocking the service.

    An incomplete index of this name is dropped first. That includes an index that another process is building, so the
    caller must check `is_being_built`. A complete index is kept. The caller must not be inside a transaction.
    """
    found = indexes().get(name)
    if found and not found.is_complete:
        drop(name)
    _execute(CREATE[name])


def drop(name: str) -> None:
    """Drop the index `name`, a key of `DROP`, if it exists, without blocking the service.

    The caller must not be inside a transaction.
    """
    _execute(DROP[name])


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
