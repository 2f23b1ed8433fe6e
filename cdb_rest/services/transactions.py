"""The transaction around a write."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import Error, connection, transaction
from psycopg2 import errorcodes

from cdb_rest import named_sql
from cdb_rest.domain.errors import ConcurrentChangeError

LIMIT_LOCK_WAIT = named_sql.load("limit_lock_wait")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

ATTEMPTS = 5
LOST_RACES = {errorcodes.SERIALIZATION_FAILURE, errorcodes.DEADLOCK_DETECTED, errorcodes.FOREIGN_KEY_VIOLATION}


def write(service: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Run a service in one transaction, in which no lock is waited for longer than `CDB_LOCK_TIMEOUT_SECONDS`.

    What was lost to another writer is played again, a few times: it then either succeeds or fails for a reason that the
    caller can understand.
    """

    @functools.wraps(service)
    def in_transaction(*arguments: Any, **values: Any) -> Result:
        if connection.in_atomic_block:
            # Part of a larger write, which is what would be played again.
            with transaction.atomic():
                return service(*arguments, **values)
        for _ in range(ATTEMPTS - 1):
            try:
                return _run(service, *arguments, **values)
            except (ConcurrentChangeError, Error) as error:
                if not is_lost_race(error):
                    raise
        return _run(service, *arguments, **values)

    return in_transaction


def is_lost_race(error: Exception) -> bool:
    """Whether another writer was quicker, so that trying again makes sense."""
    return isinstance(error, ConcurrentChangeError) or getattr(error.__cause__, "pgcode", None) in LOST_RACES


def _run(service: Callable, *arguments: Any, **values: Any) -> Any:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(LIMIT_LOCK_WAIT, {"milliseconds": str(settings.CDB_LOCK_TIMEOUT_SECONDS * 1000)})
        return service(*arguments, **values)
