"""JSON encoding, the renderer of Django REST framework, and content negotiation that always selects JSON."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import orjson
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from cdb_rest.observe.timing import rendering


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
        with rendering((renderer_context or {}).get("request")):
            return dump(data)


class AlwaysJSON(BaseContentNegotiation):
    """Content negotiation that parses a body without a content type as JSON, and ignores `Accept`."""

    def select_parser(self, request: Any, parsers: Iterable[BaseParser]) -> BaseParser | None:
        media_type = (request.content_type or "").split(";")[0].strip().lower()
        return next((parser for parser in parsers if media_type in ("", parser.media_type)), None)

    def select_renderer(
        self, request: Any, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str | None]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type
