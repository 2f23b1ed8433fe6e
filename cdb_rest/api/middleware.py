"""What holds for every request, whatever its route: bodies within bounds and read to their end, HEAD, no NUL bytes."""

import logging
import time
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from cdb_rest.api.errors import answer, incomplete_body

logger = logging.getLogger(__name__)

# A body that nobody reads is still taken off the line up to this size: a connection that is closed with unread data is
# reset, and the client loses the answer.
DISCARD_LIMIT_BYTES = 256 * 1024 * 1024
DISCARD_PIECE_BYTES = 64 * 1024
DISCARD_SECONDS = 20


class EdgeMiddleware:
    """The outermost layer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = _in_json(self._refusal(request) or self._answer(request))
        if not getattr(request, "body_ended_early", False):
            _discard_rest_of_body(request)
        response.headers.setdefault("Cache-Control", "no-store")
        if response.status_code == 304:
            # The framework would say 0, which a cache could take for the length of what it has.
            del response.headers["Content-Length"]
        elif not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        if request.method == "HEAD":
            response = _without_body(response)
        return response

    def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.method in ("GET", "HEAD") and not _discard_rest_of_body(request):
            # No view reads it, and an export that has begun would keep its place while nobody takes anything.
            request.body_ended_early = True
            return incomplete_body()
        return self.get_response(request)

    @staticmethod
    def _refusal(request: HttpRequest) -> HttpResponse | None:
        """The answer to a request that goes no further, or None."""
        if "\x00" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
            # PostgreSQL's text can't hold it.
            return answer(400, "invalid_input", "The URL must not contain a NUL byte.")
        if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            return answer(
                400, "length_required", "Send the body with a Content-Length; chunked bodies are not accepted."
            )
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal():
            return answer(400, "length_required", "The Content-Length is not a number.")
        if int(length) and request.META.get("HTTP_CONTENT_ENCODING", "").lower() not in ("", "identity"):
            return answer(415, "unsupported_media_type", "Send the body as it is; compressed ones are not accepted.")
        if int(length) > settings.CDB_MAX_BODY_BYTES:
            limit = f"{settings.CDB_MAX_BODY_BYTES} bytes"
            return answer(413, "body_too_large", f"The body has {length} bytes; at most {limit} are accepted.")
        return None


def _in_json(response: HttpResponse) -> HttpResponse:
    """The response itself, or for an error that some library worded otherwise, the same in JSON."""
    if response.status_code < 400 or response.get("Content-Type", "").startswith("application/json"):
        return response
    substitute = answer(response.status_code, "refused", f"The request was refused: {response.reason_phrase}.")
    if "Allow" in response:
        substitute["Allow"] = response["Allow"]
    return substitute


def _discard_rest_of_body(request: HttpRequest) -> bool:
    """Read it if it is not too long; False where the client keeps silent or goes away meanwhile."""
    length = request.META.get("CONTENT_LENGTH", "")
    if not length.isdecimal() or int(length) > DISCARD_LIMIT_BYTES:
        return True
    deadline = time.monotonic() + DISCARD_SECONDS
    try:
        while time.monotonic() < deadline and request._stream.read(DISCARD_PIECE_BYTES):
            pass
    except OSError:
        logger.debug("the client went away while its body was discarded")
        return False
    return True


def _without_body(response: HttpResponse) -> HttpResponse:
    """The answer to HEAD: the same status and headers, nothing behind them."""
    if response.streaming:
        response.close()
        return HttpResponse(status=response.status_code, headers=dict(response.items()))
    response.content = b""
    return response
