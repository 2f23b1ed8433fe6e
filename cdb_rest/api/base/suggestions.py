"""Suggestions for unknown names: the nearest existing global tag, payload type or path."""

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
# Longer paths are not compared.
PATH_LENGTH = 300


def nearest_name(error: CdbError) -> str | None:
    """The name of an existing object that is nearest to the one in a `NotFoundError`; None if there is none.

    It is also None for other errors, and if the database does not respond.
    """
    name = error.name if isinstance(error, NotFoundError) else None
    statement = STATEMENTS.get(type(error))
    if statement is None or not isinstance(name, str) or not 0 < len(name) <= NAME_LENGTH:
        return None
    with suppress(Error):
        return _nearest_name(statement, name, int(monotonic() / KEPT_SECONDS))
    return None


@lru_cache(maxsize=1000)
def _nearest_name(statement: str, name: str, _period: int) -> str | None:
    rows = fetch_all(statement, {"name": name, "half": (len(name) + 1) // 2})
    return _nearest(name, (found for (found,) in rows))


def forget() -> None:
    """Forget all suggestions, for tests."""
    _nearest_name.cache_clear()


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
    nearest = _nearest("/".join(given), routes)
    return routes[nearest] if nearest else None


def _nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that is nearest to a name, ignoring case; None if none is near."""
    by_text = {candidate.casefold(): candidate for candidate in candidates}
    return next((by_text[text] for text in get_close_matches(name.casefold(), by_text, n=1)), None)
