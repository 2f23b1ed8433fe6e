"""The mode of a database's intervals, which is fixed when the database is made."""

from typing import Any

from cdb_rest import named_sql

HAS_PROPERTIES = named_sql.load("has_properties")
IOV_MODE = named_sql.load("iov_mode")


def recorded(cursor: Any) -> str | None:
    """The mode that the database was made in, None before it is migrated."""
    cursor.execute(HAS_PROPERTIES)
    if not cursor.fetchone()[0]:
        return None
    cursor.execute(IOV_MODE)
    row = cursor.fetchone()
    return row[0] if row else None


def conflict(made_in: str | None, configured: str) -> str | None:
    """What is wrong, as a sentence, if a database was made in another mode than the configured one; else None.

    In the other mode the same stored ends mean other intervals.
    """
    if made_in in (None, configured):
        return None
    return f"the database was made with CDB_IOV_MODE={made_in}, so it can't be used with CDB_IOV_MODE={configured}"
