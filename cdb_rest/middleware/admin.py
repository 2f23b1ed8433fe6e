"""Session, authentication and message middleware for admin and login only, so that API requests do not pay for them."""

from collections.abc import Awaitable
from typing import Any

from django.contrib.auth import logout
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from cdb_rest.domain.access import All, Role
from cdb_rest.domain.errors import InvalidTokenError
from cdb_rest.identity.authentication import permissions_of_session
from cdb_rest.observe.request_context import context_of

# The admin, the login at an identity provider, and the logout.
PREFIXES = ("/admin/", "/oidc/", "/logout")


class _AdminOnly(MiddlewareMixin):
    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if request.path_info.startswith(PREFIXES):
            return super().__call__(request)
        return self.get_response(request)


class AdminSessionMiddleware(_AdminOnly, SessionMiddleware):
    """Sessions for the admin and the login at an identity provider."""


class AdminAuthenticationMiddleware(_AdminOnly, AuthenticationMiddleware):
    """Authentication for the admin and the login at an identity provider."""

    def process_view(self, request: HttpRequest, *_view: Any) -> None:
        """Set the actor of the request context, and the permissions of persons who logged in at an identity provider.

        Such persons may use the admin as long as the rules for their claims give them the role administrator for all
        tags and types. This is not stored with the account, so a change of the rules takes effect within
        `rules.REFRESH_SECONDS`. Persons whose tokens were revoked are logged out. Raises `django.db.Error`.
        """
        if not request.path_info.startswith(PREFIXES) or not request.user.is_authenticated:
            return
        context_of(request.META).actor = request.user.get_username()
        try:
            permissions = permissions_of_session(request.session)
        except InvalidTokenError:
            logout(request)
            return
        if any(one.covers(Role.ADMINISTRATOR, All.ALL, All.ALL) for one in permissions):
            # `OIDCBackend.has_perm` reads the second attribute.
            request.user.is_staff = request.user.is_administrator = True  # type: ignore[attr-defined]


class AdminMessageMiddleware(_AdminOnly, MessageMiddleware):
    """Messages for the admin and the login at an identity provider."""
