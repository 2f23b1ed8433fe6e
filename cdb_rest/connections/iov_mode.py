"""The IOV mode of a database, which is fixed when the database is created."""

from typing import Any

from cdb_rest import named_sql

HAS_PROPERTIES = named_sql.load("has_properties")
IOV_MODE = named_sql.load("iov_mode")


def recorded(cursor: Any) -> str | None:
    """The mode in which the database was created; None if none is recorded, as before the migrations.

    `cursor` is a cursor of the driver or of Django. Raises its database errors.
    """
    cursor.execute(HAS_PROPERTIES)
    if not cursor.fetchone()[0]:
        return None
    cursor.execute(IOV_MODE)
    row = cursor.fetchone()
    return row[0] if row else None


def conflict(created_in: str | None, configured: str) -> str | None:
    """An error message if the database was created in another mode than the configured one, else None.

    There is no conflict if `created_in` is None. In the other mode, the same stored ends would mean other intervals.
    """
    if created_in in (None, configured):
        return None
    return f"the database was created with CDB_IOV_MODE={created_in}; it cannot be used with CDB_IOV_MODE={configured}"
