"""The transaction around a write."""

import functools
import logging
import random
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import Error, connection, transaction

from cdb_rest import named_sql
from cdb_rest.connections import deadlines
from cdb_rest.domain.errors import ConcurrentChangeError
from cdb_rest.metrics import counts
from cdb_rest.services.driver_errors import translate

logger = logging.getLogger(__name__)

LIMIT_WRITE = named_sql.load("limit_write")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

ATTEMPTS = 5
LONGEST_PAUSE_SECONDS = 0.02


def write(service: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Run a service in one transaction, in which no lock is waited for longer than `CDB_LOCK_TIMEOUT_SECONDS`.

    In the serving process no statement of it takes longer than `CDB_STATEMENT_TIMEOUT_SECONDS`.

    What was lost to another writer is played again, a few times: it then either succeeds or fails for a reason that the
    caller can understand. Errors of the driver are raised in the service's terms.
    """

    @functools.wraps(service)
    def in_transaction(*arguments: Parameters.args, **values: Parameters.kwargs) -> Result:
        # A part of a larger write is played again with the whole.
        attempts = 1 if connection.in_atomic_block else ATTEMPTS
        for attempt in range(1, attempts + 1):
            try:
                return _run(service, *arguments, **values)
            except ConcurrentChangeError as error:
                if attempt == attempts:
                    raise
                counts.REPLAYS.inc()
                # Those that met here should not meet again.
                time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS * attempt))  # noqa: S311 -- no secret
                logger.info("%s is played again: %s", service.__name__, error)
        raise AssertionError("unreachable")

    return in_transaction


def _run(service: Callable[Parameters, Result], *arguments: Parameters.args, **values: Parameters.kwargs) -> Result:
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                lock = str(settings.CDB_LOCK_TIMEOUT_SECONDS * 1000)
                cursor.execute(LIMIT_WRITE, {"lock": lock, "statement": deadlines.heavy_milliseconds()})
            deadlines.extend()
            return service(*arguments, **values)
    except Error as error:
        translated = translate(error)
        if translated is error:
            raise
        raise translated from error
