"""The indexes that strategies want beside the lookup's own: made and dropped by hand, since production carries none of them."""

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
    """An index of the table of IOVs: its size in bytes, whether it is complete, and whether somebody is building it."""

    size: int
    is_complete: bool
    is_in_the_making: bool


def indexes() -> dict[str, Index]:
    """All indexes of the table of IOVs by name."""
    with connection.cursor() as cursor:
        cursor.execute(INDEXES)
        return {name: Index(*facts) for name, *facts in cursor.fetchall()}


def complete_indexes() -> set[str]:
    """The names of those that queries can use."""
    return {name for name, index in indexes().items() if index.is_complete}


def create(name: str) -> None:
    """Make the index `name` while the service goes on. An unfinished one in its place is dropped first; a complete one stays."""
    found = indexes().get(name)
    if found and not found.is_complete:
        drop(name)
    _execute(CREATE[name])


def drop(name: str) -> None:
    """Drop the index `name` while the service goes on; nothing happens where there is none."""
    _execute(DROP[name])


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
