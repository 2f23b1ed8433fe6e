"""Suggestions for unknown names: similar global tags and payload types, and the nearest path."""

import re
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from time import monotonic

from django.db import Error

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.routes import ROUTES
from cdb_rest.rules.errors import CdbError, GlobalTagNotFoundError, NotFoundError, PayloadTypeNotFoundError
from cdb_rest.rules.names import NAME_LENGTH

# Names that are similar to a given one: at most a hundred.
STATEMENTS: dict[type[CdbError], str] = {
    GlobalTagNotFoundError: named_sql.load("similar_global_tags"),
    PayloadTypeNotFoundError: named_sql.load("similar_payload_types"),
}
PREFIX = "/api/cdb_rest/"
PARAMETER = re.compile("<str:(.*?)>")
# The suggestion for a name is kept for this time, because jobs repeat a wrong name.
KEPT_SECONDS = 10
# The largest number of suggestions.
MOST = 5
# Longer paths are not compared.
PATH_LENGTH = 300


def similar_names(error: CdbError) -> list[str]:
    """Up to `MOST` names of existing objects that are similar to the one in a `NotFoundError`, the nearest one first.

    There are none for other errors, and if the database does not respond.
    """
    name = error.name if isinstance(error, NotFoundError) else None
    statement = STATEMENTS.get(type(error))
    if statement is None or not isinstance(name, str) or not 0 < len(name) <= NAME_LENGTH:
        return []
    with suppress(Error):
        return _similar_names(statement, name, int(monotonic() / KEPT_SECONDS))
    return []


@lru_cache(maxsize=1000)
def _similar_names(statement: str, name: str, _period: int) -> list[str]:
    rows = fetch_all(statement, {"name": name, "half": (len(name) + 1) // 2})
    return _similar(name, (found for (found,) in rows))


def forget() -> None:
    """Forget all suggestions, for tests."""
    _similar_names.cache_clear()


def nearest_route(path: str) -> str | None:
    """The path of the API that is nearest to an unknown one, with the names of its parameters; None if there is none."""
    if not path.startswith(PREFIX) or len(path) > PATH_LENGTH:
        return None
    given = path.removeprefix(PREFIX).rstrip("/").split("/")
    routes: dict[str, str] = {}
    for route in (route for item in ROUTES for route in item.paths):
        parts = route.rstrip("/").split("/")
        if len(parts) == len(given):
            # A parameter may have any value.
            filled = [value if PARAMETER.fullmatch(part) else part for part, value in zip(parts, given, strict=True)]
            routes.setdefault("/".join(filled), PREFIX + PARAMETER.sub(r"<\1>", route))
    return next((routes[route] for route in _similar("/".join(given), routes)), None)


def _similar(name: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that are similar to a name, ignoring case, the nearest one first."""
    by_text = {candidate.casefold(): candidate for candidate in candidates}
    return [by_text[text] for text in get_close_matches(name.casefold(), by_text, n=MOST)]
