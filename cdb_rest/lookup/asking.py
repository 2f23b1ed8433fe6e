"""Sending a question to the database, in one round trip."""

from django.db import Error, connection


def ask(statement: str, parameters: dict) -> list[tuple]:
    """The rows of a query in one round trip, without the health check that would be a second one.

    Asking twice is harmless, so a connection that turns out to be lost is replaced and the question asked again.
    """
    connection.health_check_done = True
    try:
        return _execute(statement, parameters)
    except Error:
        if connection.in_atomic_block or connection.is_usable():
            raise
        connection.close()
        return _execute(statement, parameters)


def _execute(statement: str, parameters: dict) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()
