"""Sending a question to the database, in one round trip."""

from collections.abc import Callable

from django.db import Error, connection


def ask(statement: str, parameters: dict, note_start: Callable[[], None] | None = None) -> list[tuple]:
    """The rows of a query in one round trip, without the health check that would be a second one.

    `note_start` is called each time that there is a connection and the query is sent.

    Asking twice is harmless, so a connection that turns out to be lost is replaced and the question asked again.
    """
    connection.health_check_done = True
    try:
        return _execute(statement, parameters, note_start)
    except Error:
        if connection.in_atomic_block or connection.is_usable():
            raise
        connection.close()
        return _execute(statement, parameters, note_start)


def _execute(statement: str, parameters: dict, note_start: Callable[[], None] | None) -> list[tuple]:
    with connection.cursor() as cursor:
        if note_start:
            note_start()
        cursor.execute(statement, parameters)
        return cursor.fetchall()
