"""What a database must be for the service to use it: a primary, with the configured IOV mode."""

from typing import Any

from psycopg2 import errorcodes
from psycopg2.errors import UndefinedTable

from cdb_rest import named_sql

RECOVERY_AND_MODE = named_sql.load("recovery_and_mode")
RECOVERY = named_sql.load("recovery")
# The errors of statements that a standby, or a server that was made read-only, refuses. The second has the text "recovery is in
# progress"; the service causes no other error with this SQLSTATE.
NOT_A_PRIMARY = {errorcodes.READ_ONLY_SQL_TRANSACTION, errorcodes.OBJECT_NOT_IN_PREREQUISITE_STATE}
STANDBY = (
    "the server is a standby: it cannot be written to, and its data may be old. Let DATABASE_URL name the primary; it may name "
    "several hosts with target_session_attrs=read-write"
)


def objection(cursor: Any, configured_mode: str, *, may_be_standby: bool = False) -> str | None:
    """An error message if the server is a standby, or if the database was created in another IOV mode; None if it can be used.

    In the other mode, the same stored ends would mean other intervals. A database without tables has no mode yet. `cursor` is a
    cursor of the driver, on a connection with autocommit. Raises its database errors.
    """
    try:
        cursor.execute(RECOVERY_AND_MODE)
    except UndefinedTable:
        cursor.execute(RECOVERY)
    [(is_standby, created_in)] = cursor.fetchall()
    if is_standby and not may_be_standby:
        return STANDBY
    if created_in not in (None, configured_mode):
        return f"the database was created with CDB_IOV_MODE={created_in}; it cannot be used with CDB_IOV_MODE={configured_mode}"
    return None
