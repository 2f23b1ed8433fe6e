"""Concurrent calls on separate connections."""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from cdb_rest.rules.errors import CdbError

WRITERS = 12


def together(calls):
    """Run the calls at the same time; returns what each returned or raised."""

    def run(call):
        try:
            return call()
        except CdbError as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@contextlib.contextmanager
def held(statement, *parameters):
    """Run a statement in a transaction of its own and keep that open inside the block."""
    holder = connection.copy()
    holder.set_autocommit(False)
    with holder.cursor() as cursor:
        cursor.execute(statement, parameters)
    try:
        yield
    finally:
        holder.rollback()
        holder.close()


def later(pool, call):
    """Start a call, and give it the time to reach the lock that it will wait for."""
    future = pool.submit(lambda: together([call])[0])
    time.sleep(0.5)
    return future
