"""Holding the counts that the database keeps against the rows themselves."""

from dataclasses import dataclass

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.services.transactions import write

WRONG_COUNTS = named_sql.load("wrong_counts")
REPAIR_LIST_COUNTS = named_sql.load("repair_list_counts")
REPAIR_TAG_COUNTS = named_sql.load("repair_tag_counts")
CARRY_COUNTS = named_sql.load("carry_counts")
OUTDATE = named_sql.load("outdate_global_tags")
LOCK_FOR_REPAIR = named_sql.load("lock_for_repair")


@dataclass(frozen=True)
class WrongCount:
    """A count that differs from the rows: of which object, which count, what is kept and what is so."""

    kind: str
    name: str
    count: str
    kept: int
    actual: int


def find_wrong_counts() -> list[WrongCount]:
    """All wrong counts, from one snapshot of the database; reads every IOV's index entry."""
    with connection.cursor() as cursor:
        cursor.execute(WRONG_COUNTS)
        return [WrongCount(*row) for row in cursor.fetchall()]


@write
def repair_counts() -> list[WrongCount]:
    """Set every wrong count right and return what was wrong. Writers wait meanwhile, readers do not."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK_FOR_REPAIR)
        wrong = find_wrong_counts()
        cursor.execute(REPAIR_LIST_COUNTS)
        cursor.execute(CARRY_COUNTS)
        cursor.execute(REPAIR_TAG_COUNTS)
        if wrong:
            cursor.execute(OUTDATE)
    return wrong
