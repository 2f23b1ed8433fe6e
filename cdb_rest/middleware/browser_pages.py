"""HTML pages for developers, if the setting DEBUG is on: each shows a JSON response in a page of Django REST framework.

The debug toolbar adds itself to these pages. Only `cdb/settings.py` refers to this module, and only if DEBUG is on.
The views return the same JSON with and without DEBUG.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from debug_toolbar.middleware import show_toolbar
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from rest_framework.renderers import BrowsableAPIRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api.views.index import prefers_html
from cdb_rest.http.security import POLICY

# A page shows no more than this of a response, because browsers are slow with more.
SHOWN_BYTES = 64 * 1024

# The tokens of JSON. An array of plain values, such as a row of a lookup, is one token, so that it stays on one line.
PART = re.compile(r'\[(?:"[^"\\]*"|[^"\[\]{}])*\]|"(?:[^"\\]|\\.)*"?|[\[\]{},:]|[^\s"\[\]{},:]+')


def is_recorded(request: HttpRequest) -> bool:
    """Whether the toolbar records a request.

    It records requests from addresses in `INTERNAL_IPS`, except those for static files and the favicon.
    """
    return show_toolbar(request) and not request.path.startswith((settings.STATIC_URL, "/favicon.ico"))


class BrowserPages:
    """Middleware that replaces JSON responses with a page for clients that prefer HTML, except for HEAD.

    The page has the status of the response, but no validators, and caches must not store it. It shows at most
    `SHOWN_BYTES` of the response. Every JSON response gets `Vary: Accept`, also for other clients.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # Mark the body as read. Otherwise the toolbar would read it and wait for a client that has stopped sending.
        request.read(0)
        if not response.get("Content-Type", "").startswith("application/json"):
            return response
        # Without it, the Back button could show JSON that a script got from the same URL.
        patch_vary_headers(response, ["Accept"])
        return _page(request, response) if prefers_html(request) and request.method != "HEAD" else response


class PageRenderer(BrowsableAPIRenderer):
    """Renderer for the page of Django REST framework. The data of the response must be text, not objects."""

    def get_content(
        self, renderer: object, data: str, accepted_media_type: str, renderer_context: Mapping[str, Any]
    ) -> str:
        return data

    def get_breadcrumbs(self, request: Request) -> list[tuple[str, str]]:
        # A path with and without a trailing slash has the same name.
        return list(dict(super().get_breadcrumbs(request)).items())


def _page(request: HttpRequest, response: HttpResponse) -> Response:
    # The validators, caching and content policy of the JSON response do not apply to the page.
    left_out = ("Content-Length", "ETag", "Last-Modified", "Cache-Control", "X-Accel-Expires", POLICY)
    headers = {name: value for name, value in response.items() if name not in left_out} | {"Cache-Control": "no-store"}
    page = Response(_shown(response), status=response.status_code, headers=headers)
    page.accepted_renderer, page.accepted_media_type = PageRenderer(), PageRenderer.media_type
    # The types of both frameworks lack these attributes.
    page.renderer_context = _view(request).get_renderer_context()  # type: ignore[attr-defined]
    page.render()
    page["Content-Length"] = str(len(page.content))
    page._has_been_logged = getattr(response, "_has_been_logged", False)  # type: ignore[attr-defined]
    return page


def _view(request: HttpRequest) -> APIView:
    """The view of the request, from which the page takes its name, description and methods."""
    match = request.resolver_match
    handler: Any = match.func if match else None
    if hasattr(handler, "cls"):
        view: APIView = handler.cls(**handler.initkwargs)
    else:
        # A function view, or none because the request was rejected before URL resolution.
        view = APIView(name=handler.__name__.replace("_", " ") if handler else "refused", http_method_names=[])
    arguments, named = (match.args, match.kwargs) if match else ((), {})
    view.setup(request, *arguments, **named)
    view.format_kwarg = None
    view.request = view.initialize_request(request, *arguments, **named)
    return view


def _shown(response: HttpResponse) -> str:
    """The JSON with indentation; if it is long, its start with a note."""
    content = b""
    for piece in response:
        content += piece
        if len(content) > SHOWN_BYTES:
            break
    if response.streaming:
        # Closes the cursors and their transaction.
        response.close()
    if len(content) <= SHOWN_BYTES:
        return indent(content.decode())
    beginning = indent(content[:SHOWN_BYTES].decode(errors="ignore"))
    return (
        f"(Only the first {SHOWN_BYTES // 1024} KiB are shown; other clients get the whole response.)\n\n{beginning} …"
    )


def indent(text: str) -> str:
    """Return a JSON text with line breaks and indentation. The values are not changed.

    `text` may end anywhere, even inside a value.
    """
    pieces: list[str] = []
    depth = 0
    for part in PART.findall(text):
        if part in ("]", "}"):
            depth -= 1
            pieces.append("\n" + "    " * depth)
        pieces.append(part + " " if part == ":" else part)
        if part in ("[", "{"):
            depth += 1
        if part in ("[", "{", ","):
            pieces.append("\n" + "    " * depth)
    return "".join(pieces)
