"""Session, authentication and message middleware for admin and login only, so that API requests do not pay for them."""

from collections.abc import Awaitable
from typing import Any

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from cdb_rest.observe.request_context import context_of

# The admin, and the login at an identity provider.
PREFIXES = ("/admin/", "/oidc/")


class _AdminOnly(MiddlewareMixin):
    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if request.path_info.startswith(PREFIXES):
            return super().__call__(request)
        return self.get_response(request)


class AdminSessionMiddleware(_AdminOnly, SessionMiddleware):
    """Sessions for the admin."""


class AdminAuthenticationMiddleware(_AdminOnly, AuthenticationMiddleware):
    """Authentication for the admin."""

    def process_view(self, request: HttpRequest, *_view: Any) -> None:
        """Set the actor of the request context. The admin reads the user anyway."""
        if request.path_info.startswith(PREFIXES) and request.user.is_authenticated:
            context_of(request.META).actor = request.user.get_username()


class AdminMessageMiddleware(_AdminOnly, MessageMiddleware):
    """Messages for the admin."""
