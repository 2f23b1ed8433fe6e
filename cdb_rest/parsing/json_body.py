"""The parser of JSON bodies, with limits on their depth and number of values."""

from collections.abc import Mapping
from typing import Any

import orjson
from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

# Maximum number of nested arrays and objects. The deepest valid body is an array of rows that contain moments.
LEVELS = 16
# Maximum number of values of a body, and of a row of a bulk request. Objects have about a dozen members; the rest of the
# limit allows for commas in texts.
VALUES = 10_000
VALUES_OF_A_ROW = 32
# A moment is an array of two numbers.
VALUES_OF_A_MOMENT = 3


class TooComplexError(ParseError):
    """The body has more values, or is nested more deeply, than any valid request of its route."""


def limit_of_rows() -> int:
    """The maximum number of values of a body with rows."""
    most_rows: int = settings.CDB_MAX_BULK_ROWS
    return max(VALUES, VALUES_OF_A_ROW * most_rows)


class JSONParser(BaseParser):
    """A parser of UTF-8 JSON. Raises `ParseError` for other bodies. Of equal keys in an object, the last one counts.

    Parsed values need up to thirty times the memory of the body. So their number is limited before parsing, by the number
    of commas and opening brackets, including those in texts: every value needs one of them. The limit is `VALUES`.
    For a view with the attribute `takes_rows`, it is `VALUES_OF_A_ROW` times `CDB_MAX_BULK_ROWS`, if that is more; and for
    one with `max_moments`, `VALUES_OF_A_MOMENT` times this number more.

    Raises `TooComplexError`, a `ParseError`, if the body has too many values or levels.
    """

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        content = stream.read()
        view = (parser_context or {}).get("view")
        limit = VALUES + VALUES_OF_A_MOMENT * getattr(view, "max_moments", 0)
        if getattr(view, "takes_rows", False):
            limit = limit_of_rows()
        return parse_limited(content, limit)


def parse_limited(content: bytes, limit: int) -> Any:
    """The value of a JSON text with at most `limit` values and `LEVELS` levels. Raises `ParseError`."""
    if sum(map(content.count, (b",", b"[", b"{"))) > limit:
        raise TooComplexError(f"The body has too many values; at most {limit} are accepted.")
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ParseError(f"The body is not valid JSON: {error}.") from error
    if _is_deep(value):
        raise TooComplexError(f"The body is nested too deeply; at most {LEVELS} levels are accepted.")
    return value


def _is_deep(value: Any) -> bool:
    """Whether arrays and objects are nested in more than `LEVELS` levels. It is not recursive, so any depth is safe."""
    level = [value] if type(value) in (list, dict) else []
    for _ in range(LEVELS):
        inside = (container.values() if type(container) is dict else container for container in level)
        level = [one for values in inside for one in values if type(one) in (list, dict)]
    return bool(level)
