"""JSON in and out: the parser, the renderer, and a negotiation that never ends in anything else."""

from decimal import Decimal
from typing import Any

import orjson
from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from cdb_rest.api.timing import rendering

# The deepest that a route takes is an array of rows with moments in them.
LEVELS = 16
# An object of a request has a dozen members; a row of a bulk may have that many and commas in its texts.
VALUES = 10_000
VALUES_OF_A_ROW = 32


def dump(value: Any) -> bytes:
    """`value` as JSON: moments in time in ISO 8601 with Z, decimals as strings with all their digits."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_UTC_Z)


def _plain(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(f"no JSON form for {type(value).__name__}")


class JSONRenderer(BaseRenderer):
    """Renders what the views return."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: dict | None = None) -> bytes:
        with rendering((renderer_context or {}).get("request")):
            return dump(data)


class TooComplexError(ParseError):
    """The body has more values, or nests them deeper, than any request of its route needs."""


class JSONParser(BaseParser):
    """Parses UTF-8 JSON; whatever else stands in a body is the caller's error. Of equal keys in an object the last one counts.

    Values take up to thirty times as much memory as they take in the body, so their number is limited before they are made: by
    the number of commas and brackets, of which each needs one, those in texts included.
    """

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: dict | None = None) -> Any:
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


class AlwaysJSON(BaseContentNegotiation):
    """Takes a body without a content type for JSON, and answers in JSON whatever the client says it accepts."""

    def select_parser(self, request: Any, parsers: list[BaseParser]) -> BaseParser | None:
        media_type = (request.content_type or "").split(";")[0].strip().lower()
        return next((parser for parser in parsers if media_type in ("", parser.media_type)), None)

    def select_renderer(self, request: Any, renderers: list[BaseRenderer], format_suffix: str | None = None) -> tuple:
        return renderers[0], renderers[0].media_type
