"""The service's own lookup as a strategy, on the current connection."""

from typing import Any

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.lookup.model import LookupQuery, parameters_of
from cdb_rest.lookup.queries import look_up_here
from cdb_rest.models import GlobalTag
from cdb_rest.rules.errors import GlobalTagNotFoundError

STATEMENT = named_sql.load("lookup")


def run(query: LookupQuery) -> str:
    """The result of a lookup as JSON text, by the SQL function. Raises `GlobalTagNotFoundError`."""
    text = look_up_here(query).text
    if text is None:
        raise AssertionError("a lookup without validators must return a text")
    return text


def run_statement(query: LookupQuery) -> str:
    """The same result by the statement inside the SQL function, so that tools can show its plan.

    It takes one more round trip. Raises `GlobalTagNotFoundError`.
    """
    text: str
    [(text,)] = fetch_all(STATEMENT, statement_parameters(query))
    return text


def statement_parameters(query: LookupQuery) -> dict[str, Any]:
    """The parameters of `STATEMENT`. Reads the id of the tag. Raises `GlobalTagNotFoundError`."""
    tag_id = GlobalTag.objects.filter(name=query.tag).values_list("id", flat=True).first()
    if tag_id is None:
        raise GlobalTagNotFoundError(query.tag)
    return {"tag_id": tag_id, "moment": query.moment.combined} | parameters_of(query)
