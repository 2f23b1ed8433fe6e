"""The service's own lookup: one call of a function in the database, which returns the answer as JSON text."""

from django.db import Error, connection

from cdb_rest import named_sql
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.domain.moment import Mode
from cdb_rest.lookup.question import Question
from cdb_rest.models import GlobalTag

CALL = named_sql.load("call_lookup")
STATEMENT = named_sql.load("lookup")


def answer(question: Question) -> str:
    """The JSON text of the answer, rows ordered by payload type name. Raises `GlobalTagNotFoundError`."""
    [(text,)] = ask(CALL, {"tag": question.tag} | _parameters(question))
    if text is None:
        raise GlobalTagNotFoundError(question.tag)
    return text


def answer_in_the_open(question: Question) -> str:
    """The same by the function's statement sent as it is, so that its plan can be looked at; one round trip more.

    Raises `GlobalTagNotFoundError`.
    """
    [(text,)] = ask(STATEMENT, statement_parameters(question))
    return text


def statement_parameters(question: Question) -> dict:
    """The parameters of the function's statement. Raises `GlobalTagNotFoundError`."""
    tag_id = GlobalTag.objects.filter(name=question.tag).values_list("id", flat=True).first()
    if tag_id is None:
        raise GlobalTagNotFoundError(question.tag)
    return {"tag_id": tag_id, "moment": question.moment.combined} | _parameters(question)


def _parameters(question: Question) -> dict:
    return {
        "major": question.moment.major,
        "minor": question.moment.minor,
        "only_valid": question.only_valid,
        "inclusive": question.mode is Mode.DISCRETE,
        "as_objects": question.as_objects,
    }


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
