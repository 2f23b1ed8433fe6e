"""The service's own lookup: one call of a function in the database, which returns the answer as JSON text."""

from django.db import OperationalError, connection

from cdb_rest import named_sql
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.domain.moment import Mode
from cdb_rest.lookup.question import Question

CALL = named_sql.load("call_lookup")


def answer(question: Question) -> str:
    """The JSON text of the answer, rows ordered by payload type name. Raises `GlobalTagNotFoundError`."""
    text = _call(
        {
            "tag": question.tag,
            "major": question.moment.major,
            "minor": question.moment.minor,
            "only_valid": question.only_valid,
            "inclusive": question.mode is Mode.DISCRETE,
            "as_objects": question.as_objects,
        }
    )
    if text is None:
        raise GlobalTagNotFoundError(question.tag)
    return text


def _call(parameters: dict) -> str | None:
    """Call the function in one round trip, without the health check that would be a second one.

    Asking twice is harmless, so a connection that turns out to be lost is replaced and the question asked again.
    """
    connection.health_check_done = True
    try:
        return _execute(parameters)
    except OperationalError:
        if connection.in_atomic_block or connection.is_usable():
            raise
        connection.close()
        return _execute(parameters)


def _execute(parameters: dict) -> str | None:
    with connection.cursor() as cursor:
        cursor.execute(CALL, parameters)
        return cursor.fetchone()[0]
