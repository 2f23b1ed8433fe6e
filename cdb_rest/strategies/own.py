"""The service's own lookup, on the current connection, beside the strategies that it is compared with."""

from typing import Any

from cdb_rest import named_sql
from cdb_rest.connections.reads import ask
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.lookup.queries import look_up_here, parameters_of
from cdb_rest.lookup.question import Question
from cdb_rest.models import GlobalTag

STATEMENT = named_sql.load("lookup")


def answer(question: Question) -> str:
    """The JSON text of the answer. Raises `GlobalTagNotFoundError`."""
    text = look_up_here(question).text
    if text is None:
        raise AssertionError("the function leaves the text out only for a client that has it")
    return text


def answer_in_the_open(question: Question) -> str:
    """The same by the function's statement sent as it is, so that its plan can be looked at; one round trip more.

    Raises `GlobalTagNotFoundError`.
    """
    text: str
    [(text,)] = ask(STATEMENT, statement_parameters(question))
    return text


def statement_parameters(question: Question) -> dict[str, Any]:
    """The parameters of the function's statement. Raises `GlobalTagNotFoundError`."""
    tag_id = GlobalTag.objects.filter(name=question.tag).values_list("id", flat=True).first()
    if tag_id is None:
        raise GlobalTagNotFoundError(question.tag)
    return {"tag_id": tag_id, "moment": question.moment.combined} | parameters_of(question)
