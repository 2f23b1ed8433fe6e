"""JSON: encoding, the renderer and parser for Django REST framework, and content negotiation that always selects JSON."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import orjson
from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from cdb_rest.observe.request_context import rendering

# Maximum number of nested arrays and objects. The deepest valid body is an array of rows that contain moments.
LEVELS = 16
# Maximum number of values of a body, and of a row of a bulk request. Objects have about a dozen members; the rest of the
# limit allows for commas in texts.
VALUES = 10_000
VALUES_OF_A_ROW = 32
# A moment is an array of two numbers.
VALUES_OF_A_MOMENT = 3


def dump(value: Any) -> bytes:
    """`value` as JSON in UTF-8. Times in UTC are in ISO 8601 with Z, decimals are strings with all their digits.

    Raises `TypeError` for values without a JSON form, integers of more than 64 bits, and text that UTF-8 cannot encode.
    """
    return orjson.dumps(value, default=_plain, option=orjson.OPT_UTC_Z)


def _plain(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(f"no JSON form for {type(value).__name__}")


class JSONRenderer(BaseRenderer):
    """Renders the data that views return as JSON."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        request = (renderer_context or {}).get("request")
        with rendering(request.META if request else {}):
            return dump(data)


class AlwaysJSON(BaseContentNegotiation):
    """Content negotiation that parses a body without a content type as JSON, and ignores `Accept`."""

    def select_parser(self, request: Any, parsers: Iterable[BaseParser]) -> BaseParser | None:
        media_type = (request.content_type or "").split(";")[0].strip().lower()
        return next((parser for parser in parsers if not media_type or parser.media_type in ("*/*", media_type)), None)

    def select_renderer(
        self, request: Any, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str | None]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


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
        level = [item for values in inside for item in values if type(item) in (list, dict)]
    return bool(level)
