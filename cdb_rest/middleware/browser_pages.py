"""What the service is with DEBUG on: pages for browsers, and the choice of requests that the toolbar records.

Settings name this module only then, and nothing else imports it. The views know nothing of it: the answer is made as
always, and a browser gets it inside the framework's browsable page.
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

# More of an answer than this is not shown: nobody reads it, and a browser takes long to lay it out.
SHOWN_BYTES = 64 * 1024

# What JSON consists of. An array of plain values, such as a row of the lookup, stays in one piece.
PART = re.compile(r'\[(?:"[^"\\]*"|[^"\[\]{}])*\]|"(?:[^"\\]|\\.)*"?|[\[\]{},:]|[^\s"\[\]{},:]+')


def is_recorded(request: HttpRequest) -> bool:
    """Whether the toolbar records a request: everything from this machine but files of pages, which would fill its history."""
    return show_toolbar(request) and not request.path.startswith((settings.STATIC_URL, "/favicon.ico"))


class BrowserPages:
    """The outermost layer but for the toolbar: whoever prefers HTML to JSON gets JSON answers as pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # Marks the body as read, so that the toolbar does not wait for the rest of one whose client has fallen silent.
        request.read(0)
        if not response.get("Content-Type", "").startswith("application/json"):
            return response
        # Otherwise a browser's way back to a page could lead to the JSON that a script got from the same address.
        patch_vary_headers(response, ["Accept"])
        return _page(request, response) if prefers_html(request) and request.method != "HEAD" else response


class PageRenderer(BrowsableAPIRenderer):
    """The framework's page around an answer that is text already."""

    def get_content(
        self, renderer: object, data: str, accepted_media_type: str, renderer_context: Mapping[str, Any]
    ) -> str:
        return data

    def get_breadcrumbs(self, request: Request) -> list[tuple[str, str]]:
        # Both spellings of a path have one name.
        return list(dict(super().get_breadcrumbs(request)).items())


def _page(request: HttpRequest, answer: HttpResponse) -> Response:
    # The answer's name, the permission to keep it and what it may load are not the page's.
    left_out = ("Content-Length", "ETag", "Last-Modified", "Cache-Control", "X-Accel-Expires", POLICY)
    headers = {name: value for name, value in answer.items() if name not in left_out} | {"Cache-Control": "no-store"}
    page = Response(_shown(answer), status=answer.status_code, headers=headers)
    page.accepted_renderer, page.accepted_media_type = PageRenderer(), PageRenderer.media_type
    # The types of both frameworks lack these attributes.
    page.renderer_context = _view(request).get_renderer_context()  # type: ignore[attr-defined]
    page.render()
    page["Content-Length"] = str(len(page.content))
    page._has_been_logged = getattr(answer, "_has_been_logged", False)  # type: ignore[attr-defined]
    return page


def _view(request: HttpRequest) -> APIView:
    """The view that answered, as the page wants to know it: its name, description and methods."""
    match = request.resolver_match
    handler: Any = match.func if match else None
    if hasattr(handler, "cls"):
        view: APIView = handler.cls(**handler.initkwargs)
    else:
        # A function, or nobody because the request was refused earlier.
        view = APIView(name=handler.__name__.replace("_", " ") if handler else "refused", http_method_names=[])
    arguments, named = (match.args, match.kwargs) if match else ((), {})
    view.setup(request, *arguments, **named)
    view.format_kwarg = None
    view.request = view.initialize_request(request, *arguments, **named)
    return view


def _shown(answer: HttpResponse) -> str:
    """The JSON laid out in lines; of a long one the beginning, with a note."""
    content = b""
    for piece in answer:
        content += piece
        if len(content) > SHOWN_BYTES:
            break
    if answer.streaming:
        # Gives the cursors and their transaction back.
        answer.close()
    if len(content) <= SHOWN_BYTES:
        return lay_out(content.decode())
    beginning = lay_out(content[:SHOWN_BYTES].decode(errors="ignore"))
    return f"(Only the first {SHOWN_BYTES // 1024} KiB are shown here; programs get all of it.)\n\n{beginning} …"


def lay_out(text: str) -> str:
    """JSON, whole or cut off anywhere, with line breaks and indents; its values as they are."""
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
