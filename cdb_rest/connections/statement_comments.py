"""SQL comments with the request id and the identified actor, which appear in PostgreSQL's log and in pg_stat_activity."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from cdb_rest.observe.request_context import current_context


def named(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of a cursor, so that it puts a comment with request id and actor before the statement.

    The statement is the first argument. Outside of requests there is no comment. The comment comes first, because
    PostgreSQL truncates long statements at the end. `REQUEST_ID` and `UNSAFE` ensure that request id and actor cannot
    end the comment or contain a placeholder.
    """

    @wraps(method)
    def with_id(self: Any, statement: str | bytes, *arguments: Any, **values: Any) -> Any:
        context = current_context.get()
        if context is not None:
            actor = f" actor={context.identity}" if context.identity else ""
            comment = f"/*request_id={context.request_id}{actor}*/ "
            statement = comment.encode() + statement if isinstance(statement, bytes) else comment + statement
        return method(self, statement, *arguments, **values)

    return with_id
