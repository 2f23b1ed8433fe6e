"""Middleware of this service: observation, the edge (limits, errors as JSON, preconditions, security headers), and the admin."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.contrib.auth import logout
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import ResolverMatch, resolve

from cdb_rest.access.authentication import is_feed, permissions_of_session
from cdb_rest.api.base.authorization import REFUSED
from cdb_rest.api.base.errors import error_response, handle
from cdb_rest.api.base.views import check_names
from cdb_rest.api.service import metrics
from cdb_rest.http.caching import fails_precondition
from cdb_rest.http.security import HEADERS, PAGE_HEADERS, POLICY, SAFE_METHODS
from cdb_rest.observe.request_context import TIMING_HEADER, RequestContext, context_of
from cdb_rest.observe.request_observer import route_of
from cdb_rest.parsing.parameters import NAMED, NAMED_LENGTH
from cdb_rest.rules.errors import InvalidInputError, InvalidTokenError, UnknownParameterError, quoted

# The name of the URL pattern of all paths without a route.
NOT_FOUND = "not_found"
STATIC_FILES = f"/{settings.STATIC_URL.strip('/')}/<file>"
# The admin, the login at an identity provider, and the logout.
ADMIN_PREFIXES = ("/admin/", "/oidc/", "/logout")


class EdgeMiddleware:
    """Reject invalid requests, and complete every response.

    Errors become JSON. A request whose precondition fails gets 412. A response gets its Content-Length and the security headers,
    and none to HEAD has a body. A response without `Cache-Control` gets `no-store`, so that no cache stores it.

    /metrics is served for any Host header: Prometheus uses IP addresses, which CDB_ALLOWED_HOSTS does not contain. With DEBUG,
    HTML pages get no `Content-Security-Policy`, because the debug toolbar has inline scripts.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._page_headers = {
            name: value for name, value in PAGE_HEADERS.items() if name != POLICY or not settings.DEBUG
        }

    def __call__(self, request: HttpRequest) -> HttpResponse:
        respond = metrics if request.path_info == "/metrics" else self.get_response
        response = _as_json(self._reject(request) or respond(request))
        # What is left of the body: gunicorn would reset the connection, and nginx might lose the response.
        with suppress(OSError):
            while request.read(65536):
                pass
        if request.method in SAFE_METHODS and fails_precondition(request, response):
            response.close()
            response = error_response(
                412, "precondition_failed", "The condition in If-Match or If-Unmodified-Since does not hold."
            )
        if response.status_code == 401 and is_feed(request.META):
            # First, because feed readers may look at no other.
            response["WWW-Authenticate"] = f'Basic realm="cdb", charset="UTF-8", {response["WWW-Authenticate"]}'
        response.headers.setdefault("Cache-Control", "no-store")
        if response.status_code == 304:
            # Django would set 0, which a cache could take for the length of its stored response.
            del response.headers["Content-Length"]
        elif not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        if request.method == "HEAD":
            response = _without_body(response)
        is_page = response.get("Content-Type", "").startswith("text/html")
        for name, value in (self._page_headers if is_page else HEADERS).items():
            # A page may have a stricter policy of its own.
            response.headers.setdefault(name, value)
        return response

    @staticmethod
    def process_view(
        request: HttpRequest, view: Callable[..., HttpResponse], *_arguments: Any, **_named: Any
    ) -> HttpResponse | None:
        """The error response for query parameters that a view of Django REST framework does not accept; otherwise None.

        These are repeated ones, of which only one would count, and those that `check_names` refuses.
        """
        view_class = getattr(view, "cls", None)
        if view_class is None:
            return None
        try:
            check_names(view_class, request)
        except UnknownParameterError as error:
            return handle(error, {})
        accepted = getattr(view_class, "repeatable", ())
        names = [name for name, values in request.GET.lists() if len(values) > 1 and name not in accepted]
        if not names:
            return None
        messages = {name[:NAMED_LENGTH]: ["This parameter must be given only once."] for name in names[:NAMED]}
        return handle(InvalidInputError(f"{', '.join(messages)} must be given only once.", messages), {})

    @staticmethod
    def _reject(request: HttpRequest) -> HttpResponse | None:
        """The error response for a request that is rejected here, or None."""
        if REFUSED in request.META:
            return handle(request.META[REFUSED], {})
        if "\x00" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
            # PostgreSQL's type text cannot store NUL.
            return error_response(400, "invalid_input", "The URL must not contain a NUL byte.")
        if request.method not in SAFE_METHODS and is_cross_site(request):
            return error_response(
                403,
                "cross_site_request",
                f"Writes from pages of another site are not accepted (Origin: {request.headers.get('Origin', 'none')}).",
            )
        if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            return error_response(
                411, "length_required", "Send the body with a Content-Length; chunked bodies are not accepted."
            )
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal():
            return error_response(400, "bad_request", f"Content-Length must be a number (got {quoted(length)}).")
        if int(length) and request.META.get("HTTP_CONTENT_ENCODING", "").lower() not in ("", "identity"):
            return error_response(
                415,
                "unsupported_media_type",
                "Content-Encoding must be absent or identity; compressed bodies are not accepted.",
            )
        if int(length) > settings.CDB_MAX_BODY_BYTES:
            limit = f"{settings.CDB_MAX_BODY_BYTES} bytes"
            return error_response(413, "body_too_large", f"The body has {length} bytes; at most {limit} are accepted.")
        return None


def _as_json(response: HttpResponse) -> HttpResponse:
    """The response, or a JSON response with the same status if it is an error in another format.

    A page for persons, whose view sets `is_page`, stays as it is.
    """
    is_kept = response.status_code < 400 or getattr(response, "is_page", False)
    if is_kept or response.get("Content-Type", "").startswith("application/json"):
        return response
    error = error_response(response.status_code, "refused", f"The request was refused: {response.reason_phrase}.")
    if "Allow" in response:
        error["Allow"] = response["Allow"]
    return error


def _without_body(response: HttpResponse) -> HttpResponse:
    """The response to HEAD: the same status and headers without a body."""
    if response.streaming:
        response.close()
        return HttpResponse(status=response.status_code, headers=dict(response.items()))
    response.content = b""
    return response


class ObservationMiddleware:
    """Measure the SQL statements of each request, set its route, and add `Server-Timing` to its response.

    For a streamed response the header covers the time until the body starts. The statements of its body are only added
    to the request context. The route is None for a path without one.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        context = context_of(request.META)
        with connection.execute_wrapper(context):
            response = self.get_response(request)
        # A request may be rejected before URL resolution.
        context.route = _route_of(request.resolver_match or resolve(request.path_info), request, response)
        if isinstance(response, StreamingHttpResponse):
            # WSGI has no asynchronous bodies.
            response.streaming_content = _counted(response.streaming_content, context)  # type: ignore[arg-type]
        # With DEBUG, the toolbar has set the header already.
        toolbar = response.headers.get(TIMING_HEADER)
        own = context.server_timing()
        response.headers[TIMING_HEADER] = f"{own}, {toolbar}" if toolbar else own
        return response


def _route_of(match: ResolverMatch, request: HttpRequest, response: HttpResponseBase) -> str | None:
    if match.url_name != NOT_FOUND:
        return route_of(match.route)
    is_file = response.status_code < 400 and request.path_info.startswith(settings.STATIC_URL)
    return STATIC_FILES if is_file else None


def _counted(pieces: Iterable[bytes], context: RequestContext) -> Iterator[bytes]:
    """The pieces of a body. SQL statements that run while they are generated are counted for the request."""
    with connection.execute_wrapper(context):
        yield from pieces


class AdminMiddleware:
    """Set the actor of the request context in the admin.

    Persons of an identity provider whose tokens were revoked are logged out there, and so are all users whose account is not
    active.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    @staticmethod
    def process_view(request: HttpRequest, *_view: Any) -> None:
        """Called before the view. Raises `django.db.Error`."""
        if not request.path_info.startswith(ADMIN_PREFIXES) or not request.user.is_authenticated:
            return
        if not request.user.is_active:
            logout(request)
            return
        context_of(request.META).actor = request.user.get_username()
        try:
            permissions_of_session(request.session)
        except InvalidTokenError:
            logout(request)


def is_cross_site(request: HttpRequest) -> bool:
    """Whether a browser sends this request for a page of another site, according to `Origin` or `Sec-Fetch-Site`.

    If writes need no token, only the network protects the service, and a page
    of another site could use a browser inside the network to write. Clients other than browsers send neither header.
    The port counts: a page of another program on the same host is another site. Origins in `CSRF_TRUSTED_ORIGINS` are
    accepted, unless `Sec-Fetch-Site` says that the site is another one.

    Raises `DisallowedHost` if `Origin` must be compared with a Host header that is not allowed.
    """
    if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
        return True
    origin = request.headers.get("Origin")
    if origin is None or origin in settings.CSRF_TRUSTED_ORIGINS:
        return False
    scheme, _, host = origin.partition("://")
    return scheme not in ("http", "https") or host != request.get_host()
