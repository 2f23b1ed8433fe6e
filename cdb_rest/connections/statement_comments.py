"""SQL comments with the request id, which appear in PostgreSQL's log and in pg_stat_activity."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from cdb_rest.observe.request_context import current_context


def named(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a cursor that puts a comment with the request id before the statement, its first argument.

    Before it, because PostgreSQL truncates long statements at the end. A request id can neither end the comment nor contain
    a placeholder (`REQUEST_ID`).
    """

    @wraps(method)
    def with_id(self: Any, statement: str | bytes, *arguments: Any, **values: Any) -> Any:
        context = current_context.get()
        if context is not None:
            comment = f"/*request_id={context.request_id}*/ "
            statement = comment.encode() + statement if isinstance(statement, bytes) else comment + statement
        return method(self, statement, *arguments, **values)

    return with_id
