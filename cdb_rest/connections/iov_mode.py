"""The IOV mode of a database, which is fixed when the database is created."""

from typing import Any

from psycopg2.errors import UndefinedTable

from cdb_rest import named_sql

IOV_MODE = named_sql.load("iov_mode")


def conflict(cursor: Any, configured: str) -> str | None:
    """An error message if the database was created in another mode than the configured one, else None.

    In the other mode, the same stored ends would mean other intervals. A database without tables has no mode yet. `cursor` is one
    of the driver, whose transaction fails if there are no tables. Raises its database errors.
    """
    try:
        cursor.execute(IOV_MODE)
    except UndefinedTable:
        return None
    for (created_in,) in cursor.fetchall():
        if created_in != configured:
            return f"the database was created with CDB_IOV_MODE={created_in}; it cannot be used with CDB_IOV_MODE={configured}"
    return None
