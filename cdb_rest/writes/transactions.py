"""The transaction of a write: timeouts, retries, translated database errors, and responses for repeated requests."""

import functools
import logging
import random
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import Error, connection, transaction

from cdb_rest import named_sql
from cdb_rest.connections import postgresql
from cdb_rest.rules.errors import ConcurrentChangeError, KeyReusedError
from cdb_rest.writes.driver_errors import translate

logger = logging.getLogger(__name__)
LIMIT_WRITE = named_sql.load("limit_write")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
ATTEMPTS = 5
LONGEST_PAUSE_SECONDS = 0.02


def write(service: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a service so that it runs in one transaction.

    A statement waits for a lock for at most `CDB_LOCK_TIMEOUT_SECONDS`. In a serving process, a statement takes at most
    `CDB_STATEMENT_TIMEOUT_SECONDS`. Exceeding either raises `DatabaseUnavailableError`.

    After a conflict with another writer (`ConcurrentChangeError`), the service is called again, up to `ATTEMPTS` times
    in all, each time in a new transaction. So its only effects must be changes of the database. It then usually
    succeeds, or fails with an error that the client can understand. After the last attempt, `ConcurrentChangeError` is
    raised.

    Inside another transaction, the service has a savepoint and is not retried; an outer `write` is retried as a whole.

    Django's database errors are translated into the service's errors (`driver_errors.translate`). Errors of the driver
    itself, from statements that bypass Django, are not translated.
    """

    @functools.wraps(service)
    def in_transaction(*arguments: Parameters.args, **values: Parameters.kwargs) -> Result:
        # Inside a larger write, only the whole write is retried.
        attempts = 1 if connection.in_atomic_block else ATTEMPTS
        for attempt in range(1, attempts + 1):
            try:
                return _run(service, *arguments, **values)
            except ConcurrentChangeError as error:
                if attempt == attempts:
                    raise
                # A random pause, so that the same writers do not conflict again.
                time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS * attempt))  # noqa: S311 -- no secret
                logger.info("%s is retried: %s", service.__name__, error)
        raise AssertionError("unreachable")

    return in_transaction


def _run(service: Callable[Parameters, Result], *arguments: Parameters.args, **values: Parameters.kwargs) -> Result:
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                lock = str(settings.CDB_LOCK_TIMEOUT_SECONDS * 1000)
                cursor.execute(LIMIT_WRITE, {"lock": lock, "statement": postgresql.extend()})
            return service(*arguments, **values)
    except Error as error:
        translated = translate(error)
        if translated is error:
            raise
        raise translated from error


@write
def roll_back(execute: Callable[[], Result]) -> Result:
    """Call `execute`, and return its result; all that it has changed in the database is undone. Raises its errors."""
    result = execute()
    transaction.set_rollback(True)
    return result


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
