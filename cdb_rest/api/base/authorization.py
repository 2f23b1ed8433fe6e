"""Authorization of requests: a write to the API needs the role of its route, and a read the role reader if reads are closed.

The services check the roles of a write again, for its global tags and payload types.
"""

import re
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from rest_framework.authentication import CSRFCheck
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from cdb_rest.access.authentication import SESSION, principal_of
from cdb_rest.http.security import SAFE_METHODS
from cdb_rest.routes import ROUTES
from cdb_rest.rules.access import Role
from cdb_rest.rules.errors import NotPermittedError

if TYPE_CHECKING:
    # The module of the views imports this one, by the setting DEFAULT_PERMISSION_CLASSES.
    from rest_framework.views import APIView

PREFIX = "api/cdb_rest/"
WRITES = {PREFIX + spelling: route.writes for route in ROUTES for spelling in route.spellings}
READS_BY_POST = {PREFIX + spelling for route in ROUTES if route.reads_by_post for spelling in route.spellings}
POSTED_READS = [re.compile("/" + re.sub("<.*?>", "[^/]+", spelling)) for spelling in READS_BY_POST]
PUBLIC = {PREFIX + spelling for route in ROUTES if route.is_public for spelling in route.spellings}

# What all clients may read even if reads are closed: the login, what monitoring needs, and the description of the API.
OPEN = (
    "/health/",
    "/metrics",
    "/admin/",
    "/oidc/",
    "/login",
    "/logout",
    "/static/",
    "/favicon.ico",
    "/api/docs",
    "/api/schema",
)
# WSGI variable: why a read is refused. `EdgeMiddleware` makes the response, which is a page for a browser.
REFUSED = "cdb.refused"


def is_closed_read(method: str, path: str) -> bool:
    """Whether a request to a path of this server is a read that needs the role reader if reads are closed.

    So is each request for a page: the response to a form shows the tag, its history or the payload types again.
    """
    if method in SAFE_METHODS or not path.startswith("/api/"):
        return not path.startswith(OPEN) and path.removeprefix("/") not in PUBLIC
    return not is_write(method, path)


def is_write(method: str, path: str) -> bool:
    """Whether a request to a path of the API is no read."""
    is_posted_read = method == "POST" and any(pattern.fullmatch(path) for pattern in POSTED_READS)
    return method not in SAFE_METHODS and not is_posted_read


class RoutePermission(BasePermission):
    """The permission class of all views: a write needs the role of its route, for at least one tag and payload type.

    If that is the role reader, it needs a token or a login, and the role only if reads are closed.
    So a client without any permission is refused before its body is read. Reads are checked elsewhere
    (`cdb_rest.wsgi.refusals`).
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Return True, or raise an error.

        Raises `AuthenticationRequiredError`, `NotPermittedError` (also for a write with a session and without a CSRF
        token), and the errors of `principal_of`.
        """
        path = request.resolver_match.route if request.resolver_match else ""
        if request.method in SAFE_METHODS or (request.method == "POST" and path in READS_BY_POST):
            return True
        role = WRITES.get(path)
        # A method that the route does not have is refused by the view, with 405.
        if role is not None and hasattr(view, (request.method or "").lower()):
            principal = principal_of(request.META)
            if role == Role.READER:
                principal.require_known()
            if role > Role.READER or not settings.CDB_ANONYMOUS_READS:
                principal.require(role)
            if principal.method == SESSION:
                _check_csrf(request._request)
        return True


def _check_csrf(request: HttpRequest) -> None:
    """Raise `NotPermittedError` unless the request passes Django's CSRF check. Only writes with a session need it.

    The header `X-CSRFToken` must have the CSRF token of a page of this service. Raises `UnsupportedMediaType` for a form
    that is not valid, because the check also looks for the token in forms.
    """
    check = CSRFCheck(_no_response)
    check.process_request(request)
    try:
        reason = check.process_view(request, _no_response, (), {})
    except (MultiPartParserError, SuspiciousOperation) as error:
        raise UnsupportedMediaType(request.content_type or "") from error
    if reason:
        raise NotPermittedError(f"A write with a session needs the header X-CSRFToken ({reason}).")


def _no_response(_request: HttpRequest) -> HttpResponse:
    """The handler that Django's check for CSRF tokens asks for and does not call."""
    raise AssertionError("unreachable")
