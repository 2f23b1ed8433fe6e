"""Idempotency records: a repeated request with the same idempotency key gets the stored response of the first one."""

from collections.abc import Callable

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.rules.errors import ConcurrentChangeError, KeyReusedError
from cdb_rest.writes.transactions import write

CLAIM = named_sql.load("claim_idempotency_key")
FIND = named_sql.load("find_idempotency_record")
STORE = named_sql.load("store_idempotent_response")
DELETE_EXPIRED = named_sql.load("delete_idempotency_records")


@write
def respond_once(*, actor: str, key: str, request_digest: str, execute: Callable[[], str]) -> str:
    """Return the response stored for `key`. If there is none, call `execute`, store its response and return it.

    `execute` runs in the same transaction, so its writes are committed if and only if the response is stored. If it raises,
    nothing is stored. After a conflict, it is called again, so its only effects must be changes of the database.

    If another request with the same key is in progress, this one waits for it, for at most `CDB_LOCK_TIMEOUT_SECONDS`,
    and then raises `DatabaseUnavailableError`.

    Each actor has keys of its own. A record expires after `CDB_IDEMPOTENCY_HOURS`.

    `request_digest` identifies the request. Raises `KeyReusedError` if the key was used with another request,
    `ConcurrentChangeError` if the record expired during the call, and the errors of `execute`.
    """
    with connection.cursor() as cursor:
        cursor.execute(DELETE_EXPIRED, {"key": key, "hours": settings.CDB_IDEMPOTENCY_HOURS})
        cursor.execute(CLAIM, {"actor": actor, "key": key, "request_digest": request_digest})
        if not cursor.rowcount:
            cursor.execute(FIND, {"actor": actor, "key": key})
            record = cursor.fetchone()
            if record is None:
                raise ConcurrentChangeError(
                    f"The stored response for the idempotency key {key} just expired; try again."
                )
            stored_digest: str
            response: str
            stored_digest, response = record
            if stored_digest != request_digest:
                raise KeyReusedError(f"The idempotency key {key} was used with another request; use a new one.")
            return response
    response = execute()
    with connection.cursor() as cursor:
        cursor.execute(STORE, {"actor": actor, "key": key, "response": response})
    return response
