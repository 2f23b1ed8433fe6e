"""The mode of a database's intervals, which is fixed when the database is made."""

from typing import Any

from cdb_rest import named_sql

HAS_PROPERTIES = named_sql.load("has_properties")
IOV_MODE = named_sql.load("iov_mode")


def conflict(cursor: Any, configured: str) -> str | None:
    """What is wrong, as a sentence, if the database was made in another mode than the configured one; else None.

    In the other mode the same stored ends mean other intervals. A database that is not migrated yet has no mode.
    """
    cursor.execute(HAS_PROPERTIES)
    if not cursor.fetchone()[0]:
        return None
    cursor.execute(IOV_MODE)
    row = cursor.fetchone()
    if row is None or row[0] == configured:
        return None
    return f"the database was made with CDB_IOV_MODE={row[0]}, so it can't be used with CDB_IOV_MODE={configured}"
