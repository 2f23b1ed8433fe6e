"""The id of a request in front of its statements, so that PostgreSQL's log and its view of activity tell whose they are."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from cdb_rest.observe.exchange import current


def named(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a cursor whose first argument is a statement: inside of a request, with its id as a comment in front.

    In front, because PostgreSQL cuts long statements at their ends. An id can't end the comment, nor is anything in it a
    placeholder (`REQUEST_ID`).
    """

    @wraps(method)
    def with_id(self: Any, statement: str | bytes, *arguments: Any, **values: Any) -> Any:
        exchange = current.get()
        if exchange is not None:
            comment = f"/*request_id={exchange.request_id}*/ "
            statement = comment.encode() + statement if isinstance(statement, bytes) else comment + statement
        return method(self, statement, *arguments, **values)

    return with_id
