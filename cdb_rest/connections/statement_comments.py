"""SQL comments with the request id and the identified actor, which appear in PostgreSQL's log and in pg_stat_activity."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from cdb_rest.observe.request_context import current_context


def named(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a cursor that puts a comment with request id and actor before the statement, its first argument.

    Before it, because PostgreSQL truncates long statements at the end. Neither of them can end the comment or contain a
    placeholder (`REQUEST_ID`, `UNSAFE`).
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
