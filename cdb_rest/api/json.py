"""JSON out: the encoding, the renderer, and a negotiation that never ends in anything else."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import orjson
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from cdb_rest.observe.timing import rendering


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

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        with rendering((renderer_context or {}).get("request")):
            return dump(data)


class AlwaysJSON(BaseContentNegotiation):
    """Takes a body without a content type for JSON, and answers in JSON whatever the client says it accepts."""

    def select_parser(self, request: Any, parsers: Iterable[BaseParser]) -> BaseParser | None:
        media_type = (request.content_type or "").split(";")[0].strip().lower()
        return next((parser for parser in parsers if media_type in ("", parser.media_type)), None)

    def select_renderer(
        self, request: Any, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str | None]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type
