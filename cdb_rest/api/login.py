"""The pages of a login at an identity provider: the redirect to it, and its callback."""

import logging
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from mozilla_django_oidc.views import (  # type: ignore[import-untyped]
    OIDCAuthenticationCallbackView,
    OIDCAuthenticationRequestView,
)
from requests import RequestException

from cdb_rest.access import memory
from cdb_rest.access.authentication import CLAIMS
from cdb_rest.access.login import setting
from cdb_rest.api.base.errors import error_response
from cdb_rest.observe.request_context import address_of
from cdb_rest.rules.errors import TooManyAttemptsError

logger = logging.getLogger(__name__)


class LoginView(OIDCAuthenticationRequestView):  # type: ignore[misc]  # it has no types
    """Redirect the browser to the identity provider; an error with status 504 if its endpoints cannot be read.

    The state of the login is stored in a session. A client address that has stored too many gets one with status 429.
    """

    get_settings = staticmethod(setting)

    def __init__(self, **values: Any) -> None:
        # The base class reads the endpoints here, before there is a request that could fail.
        super(OIDCAuthenticationRequestView, self).__init__(**values)

    def get(self, request: HttpRequest) -> HttpResponseBase:
        try:
            self.OIDC_OP_AUTH_ENDPOINT = setting("OIDC_OP_AUTHORIZATION_ENDPOINT")
            self.OIDC_RP_CLIENT_ID = setting("OIDC_RP_CLIENT_ID")
        except (OSError, ValueError) as error:
            return unreachable(error)
        # The library's key. A session without it may be new, and a cookie that names no session makes a new one.
        if "oidc_states" not in request.session:
            client = f"logins from {memory.client_at(address_of(request.META))}"
            try:
                memory.check_attempts(client)
            except TooManyAttemptsError as error:
                return failure(str(error), 429)
            memory.count_failure(client)
        response: HttpResponseBase = super().get(request)
        return response


class CallbackView(OIDCAuthenticationCallbackView):  # type: ignore[misc]  # it has no types
    """Finish a login with the code that the identity provider gave to the browser.

    If the login is refused, the response is an error with status 403. If the provider fails, it is one with status 504.
    Raises `SuspiciousOperation`, for a 400, if the session has begun logins, but no unfinished one has this `state`.
    """

    get_settings = staticmethod(setting)

    def get(self, request: HttpRequest) -> HttpResponseBase:
        try:
            response: HttpResponseBase = super().get(request)
        except (RequestException, OSError, ValueError, LookupError, AttributeError, TypeError) as error:
            # The library does not check the type of what the provider sent.
            return unreachable(error)
        return response

    def login_success(self) -> HttpResponseRedirect:
        """Log the user in and redirect to the page where the login began.

        The claims are stored in the session, because the access rules need them with each request.
        """
        response: HttpResponseRedirect = super().login_success()
        self.request.session[CLAIMS] = self.user.oidc_claims
        return response

    def login_failure(self) -> HttpResponse:
        """The response that says that the login was refused."""
        return failure("The identity provider did not confirm the login, or it took too long.", 403)


def unreachable(error: Exception) -> HttpResponse:
    """The response with status 504: the identity provider does not respond, or its response is not valid. Logs `error`."""
    logger.warning("the identity provider failed: %s", " ".join(str(error).split())[:500])
    return failure("The identity provider does not respond. Try again later.", 504)


def failure(reason: str, status: int) -> HttpResponse:
    """The response to a login that failed, which browsers see as a page."""
    return error_response(status, "login_failed", reason)
