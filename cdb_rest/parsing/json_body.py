"""The parser of JSON bodies, with limits on what it takes."""

from collections.abc import Mapping
from typing import Any

import orjson
from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

# The deepest that a route takes is an array of rows with moments in them.
LEVELS = 16
# An object of a request has a dozen members; a row of a bulk may have that many and commas in its texts.
VALUES = 10_000
VALUES_OF_A_ROW = 32


class TooComplexError(ParseError):
    """The body has more values, or nests them deeper, than any request of its route needs."""


class JSONParser(BaseParser):
    """Parses UTF-8 JSON; whatever else stands in a body is the caller's error. Of equal keys in an object the last one counts.

    Values take up to thirty times as much memory as they take in the body, so their number is limited before they are made: by
    the number of commas and brackets, of which each needs one, those in texts included.
    """

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        content = stream.read()
        most = VALUES
        if getattr((parser_context or {}).get("view"), "takes_rows", False):
            most = max(VALUES, VALUES_OF_A_ROW * settings.CDB_MAX_BULK_ROWS)
        if sum(map(content.count, (b",", b"[", b"{"))) > most:
            raise TooComplexError(f"The body has too many values; this request needs no more than {most}.")
        try:
            value = orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not valid JSON: {error}.") from error
        if _is_deep(value):
            raise TooComplexError(f"The body is nested too deeply; at most {LEVELS} levels are accepted.")
        return value


def _is_deep(value: Any) -> bool:
    """Whether arrays and objects are nested more than `LEVELS` deep; level by level, so that no depth is too much for Python."""
    level = [value] if type(value) in (list, dict) else []
    for _ in range(LEVELS):
        inside = (container.values() if type(container) is dict else container for container in level)
        level = [one for values in inside for one in values if type(one) in (list, dict)]
    return bool(level)
