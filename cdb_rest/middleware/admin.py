"""The layers that Django's admin needs, for the admin's pages alone: no other request pays for them."""

from collections.abc import Awaitable
from typing import Any

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from cdb_rest.observe.exchange import exchange_of

PREFIX = "/admin/"


class _ForAdminAlone(MiddlewareMixin):
    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if request.path_info.startswith(PREFIX):
            return super().__call__(request)
        return self.get_response(request)


class AdminSessionMiddleware(_ForAdminAlone, SessionMiddleware):
    """Sessions."""


class AdminAuthenticationMiddleware(_ForAdminAlone, AuthenticationMiddleware):
    """Who is logged in."""

    def process_view(self, request: HttpRequest, *_view: Any) -> None:
        """Note who it is, which the page asks anyway."""
        if request.path_info.startswith(PREFIX) and request.user.is_authenticated:
            exchange_of(request.META).actor = request.user.get_username()


class AdminMessageMiddleware(_ForAdminAlone, MessageMiddleware):
    """Messages from one page to the next."""
