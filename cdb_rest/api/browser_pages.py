"""HTML pages for developers, if the setting DEBUG is on: each shows a JSON response, so that the debug toolbar can add itself.

Only `cdb/settings.py` refers to this module, and only if DEBUG is on. The views return the same JSON with and without DEBUG.
"""

import json
from collections.abc import Callable

from debug_toolbar.middleware import show_toolbar
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from cdb_rest.api.service import prefers_html
from cdb_rest.http.security import POLICY

# A page shows no more than this of a response, because browsers are slow with more.
SHOWN_BYTES = 64 * 1024


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


def _page(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    content = {"response": response, "text": _shown(response)}
    page = render(request, "cdb_rest/response.html", content, status=response.status_code)
    # The validators, caching and content policy of the JSON response do not apply to the page.
    left_out = ("Content-Type", "Content-Length", "ETag", "Last-Modified", "X-Accel-Expires", POLICY)
    for name in response.headers.keys() - left_out:
        page[name] = response[name]
    page["Cache-Control"] = "no-store"
    page["Content-Length"] = str(len(page.content))
    page._has_been_logged = getattr(response, "_has_been_logged", False)  # type: ignore[attr-defined]
    return page


def _shown(response: HttpResponse) -> str:
    """The JSON with indentation; if it is long, its start as it is, with a note."""
    pieces, content = iter(response), b""
    while len(content) <= SHOWN_BYTES and (piece := next(pieces, None)) is not None:
        content += piece
    if response.streaming:
        # Closes the cursors and their transaction.
        response.close()
    if len(content) <= SHOWN_BYTES:
        return json.dumps(json.loads(content), indent=2, ensure_ascii=False)
    beginning = content[:SHOWN_BYTES].decode(errors="ignore")
    return (
        f"(Only the first {SHOWN_BYTES // 1024} KiB are shown; other clients get the whole response.)\n\n{beginning} …"
    )
