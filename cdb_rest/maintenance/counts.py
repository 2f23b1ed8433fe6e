"""Check and repair of the stored counts of payload lists and payload IOVs."""

from dataclasses import dataclass

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.writes.transactions import write

INCORRECT_COUNTS = named_sql.load("incorrect_counts")
REPAIR_LIST_COUNTS = named_sql.load("repair_list_counts")
REPAIR_TAG_COUNTS = named_sql.load("repair_tag_counts")
APPLY_DEFERRED_COUNTS = named_sql.load("apply_deferred_counts")
TOUCH = named_sql.load("touch_global_tags")
LOCK_FOR_REPAIR = named_sql.load("lock_for_repair")


@dataclass(frozen=True)
class IncorrectCount:
    """A stored count that differs from the number of rows.

    `kind` ("global tag" or "payload list") and `name` identify the object; `count` is "payload lists" or "IOVs".
    """

    kind: str
    name: str
    count: str
    stored: int
    actual: int


def find_incorrect_counts() -> list[IncorrectCount]:
    """All incorrect counts, from one snapshot of the database. Reads the index entry of every IOV."""
    with connection.cursor() as cursor:
        cursor.execute(INCORRECT_COUNTS)
        return [IncorrectCount(*row) for row in cursor.fetchall()]


@write
def repair_counts() -> list[IncorrectCount]:
    """Correct all incorrect counts and return them as they were. Writers wait meanwhile, readers do not.

    If a count was incorrect, `last_modified` of all global tags is raised, so that HTTP caches revalidate. Revisions
    and change logs do not change.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK_FOR_REPAIR)
        found = find_incorrect_counts()
        cursor.execute(REPAIR_LIST_COUNTS)
        cursor.execute(APPLY_DEFERRED_COUNTS)
        cursor.execute(REPAIR_TAG_COUNTS)
        if found:
            cursor.execute(TOUCH)
    return found
