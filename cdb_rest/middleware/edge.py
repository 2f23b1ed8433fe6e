"""What holds for every request, whatever its route: limits on bodies, no NUL bytes, errors in JSON, HEAD, security headers; and
the response to Prometheus, which needs no known host name."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from cdb_rest.api.errors import answer
from cdb_rest.api.views.monitoring import metrics
from cdb_rest.http.caching import fails_precondition
from cdb_rest.http.security import HEADERS, PAGE_HEADERS, POLICY, is_cross_site_write


class EdgeMiddleware:
    """The outermost layer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = _in_json(self._refusal(request) or self.get_response(request))
        if fails_precondition(request, response):
            response.close()
            response = answer(
                412, "precondition_failed", "The condition in If-Match or If-Unmodified-Since does not hold."
            )
        response.headers.setdefault("Cache-Control", "no-store")
        if response.status_code == 304:
            # The framework would say 0, which a cache could take for the length of what it has.
            del response.headers["Content-Length"]
        elif not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        if request.method == "HEAD":
            response = _without_body(response)
        return response

    @staticmethod
    def _refusal(request: HttpRequest) -> HttpResponse | None:
        """The answer to a request that goes no further, or None."""
        if "\x00" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
            # PostgreSQL's text can't hold it.
            return answer(400, "invalid_input", "The URL must not contain a NUL byte.")
        if is_cross_site_write(request):
            return answer(403, "cross_site_request", "A page of another site must not write here (see Origin).")
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


class SecurityHeadersMiddleware:
    """Puts the headers on all that Django answers. A page of DEBUG, which has scripts in it, may load what it likes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._page_headers = dict(PAGE_HEADERS)
        if settings.DEBUG:
            del self._page_headers[POLICY]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        is_page = response.get("Content-Type", "").startswith("text/html")
        for name, value in (self._page_headers if is_page else HEADERS).items():
            response.headers[name] = value
        return response


class MetricsMiddleware:
    """Answers Prometheus by whatever name it asks: it goes by addresses, which CDB_ALLOWED_HOSTS does not have, and can't be told
    to give another name. What it gets does not depend on one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return metrics(request) if request.path_info == "/metrics" else self.get_response(request)


def _in_json(response: HttpResponse) -> HttpResponse:
    """The response itself, or for an error that some library worded otherwise, the same in JSON."""
    if response.status_code < 400 or response.get("Content-Type", "").startswith("application/json"):
        return response
    substitute = answer(response.status_code, "refused", f"The request was refused: {response.reason_phrase}.")
    if "Allow" in response:
        substitute["Allow"] = response["Allow"]
    return substitute


def _without_body(response: HttpResponse) -> HttpResponse:
    """The answer to HEAD: the same status and headers, nothing behind them."""
    if response.streaming:
        response.close()
        return HttpResponse(status=response.status_code, headers=dict(response.items()))
    response.content = b""
    return response
