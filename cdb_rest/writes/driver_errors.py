"""Translation of database errors into the service's errors, by constraint name or SQLSTATE."""

import logging

from django.db import DatabaseError, Error, InterfaceError, OperationalError
from psycopg2 import errorcodes

from cdb_rest.connections.database_check import NOT_A_PRIMARY
from cdb_rest.rules.errors import (
    CdbError,
    ConcurrentChangeError,
    DatabaseUnavailableError,
    InvalidInputError,
    NameTakenError,
    OverlapError,
)

logger = logging.getLogger(__name__)

# Unique constraints on names, each with the kind of object as existing clients expect it in the message.
NAME_CONSTRAINTS = {
    "global_tag_name": "global tag",
    "global_tag_status_name": "global tag status",
    "payload_type_name": "payload type",
    "payload_list_name": "payload list",
    "api_token_name": "token",
}
CONSTRAINTS: dict[str, tuple[type[CdbError], str]] = {
    "payload_list_one_per_tag_and_type": (
        ConcurrentChangeError,
        "Another payload list of this type was attached at the same moment; try again.",
    ),
    "global_tag_change_revision": (ConcurrentChangeError, "The tag was changed at the same moment; try again."),
    "restoration_first_revision": (
        ConcurrentChangeError,
        "Another restoration was recorded at the same moment; try again.",
    ),
    "idempotency_record_key": (ConcurrentChangeError, "The idempotency key was used at the same moment; try again."),
    "access_rule_once": (ConcurrentChangeError, "The same access rule was added at the same moment; try again."),
    "api_token_digest": (ConcurrentChangeError, "The same token was created at the same moment; try again."),
    "revoked_token_once": (ConcurrentChangeError, "The same token was revoked at the same moment; try again."),
    "access_rule_kind": (InvalidInputError, "The kind of an access rule is unknown."),
    "access_rule_role": (InvalidInputError, "The role of an access rule is unknown."),
    # Two adoptions of one source; a lock prevents them.
    "adoption_source": (ConcurrentChangeError, "The source was adopted at the same moment; try again."),
    "adopted_tag_source": (ConcurrentChangeError, "The tag was adopted at the same moment; try again."),
    "adopted_list_source": (ConcurrentChangeError, "The list was adopted at the same moment; try again."),
    # Two reversions bring back the same deleted IOV.
    "PayloadIOV_pkey": (ConcurrentChangeError, "The same payload IOV was stored at the same moment; try again."),
    "payload_iov_lookup": (OverlapError, "An IOV of the payload list starts at the same moment."),
    "payload_iov_not_negative": (InvalidInputError, "Moments and sizes must not be negative."),
    "payload_iov_end_not_before_start": (InvalidInputError, "The end of an interval must not be before its start."),
    "payload_iov_revision_is_digits": (InvalidInputError, "A revision consists of digits."),
}
LOST_RACES = {errorcodes.SERIALIZATION_FAILURE, errorcodes.DEADLOCK_DETECTED, errorcodes.FOREIGN_KEY_VIOLATION}
# SQLSTATE classes: connection exception, insufficient resources, operator intervention (shutdown, cancelled statement),
# system error (I/O).
UNAVAILABLE_CLASSES = {"08", "53", "57", "58"}


def translate(error: Error) -> Exception:
    """The service's error for a database error, or `error` itself if only a bug can cause it.

    `error` must be Django's error, with the driver's error as its cause. If the database is unavailable, the driver's
    reason is logged.
    """
    cause = error.__cause__
    code = getattr(cause, "pgcode", None)
    constraint = getattr(getattr(cause, "diag", None), "constraint_name", None)
    if constraint in NAME_CONSTRAINTS:
        return NameTakenError(NAME_CONSTRAINTS[constraint])
    if constraint in CONSTRAINTS:
        error_class, message = CONSTRAINTS[constraint]
        return error_class(message)
    if code in LOST_RACES:
        return ConcurrentChangeError("Another request changed the same objects at the same moment; try again.")
    # A broken connection has no SQLSTATE. If the server crashes, the driver raises its most general class, DatabaseError.
    if code is None and (isinstance(error, InterfaceError | OperationalError) or type(error) is DatabaseError):
        return _unavailable(error, "The database can't be reached; try again later.")
    if code == errorcodes.DISK_FULL:
        return _unavailable(error, "The database has no disk space left; nothing was stored.")
    if code in NOT_A_PRIMARY:
        return _unavailable(
            error, "The database server is not the primary any more; nothing was stored. Try again later."
        )
    if code == errorcodes.LOCK_NOT_AVAILABLE:
        return _unavailable(
            error, "Another write or preview of the same objects is in progress; nothing was stored. Try again later."
        )
    if code and (code[:2] in UNAVAILABLE_CLASSES or code == errorcodes.IDLE_IN_TRANSACTION_SESSION_TIMEOUT):
        return _unavailable(error, "The database did not answer in time; try again later.")
    return error


def _unavailable(error: Error, message: str) -> DatabaseUnavailableError:
    """Create the error for the client, and log the driver's reason for the operator."""
    logger.warning("database unavailable: %s", " ".join(str(error).split()))
    return DatabaseUnavailableError(message)
