"""A limit on wrong passwords, in addition to that of nginx."""

from typing import Any

from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import PermissionDenied
from django.dispatch import receiver
from django.http import HttpRequest

from cdb_rest.identity import attempts
from cdb_rest.observe.request_context import address_of
from cdb_rest.rules.errors import TooManyAttemptsError


class LimitedBackend:
    """An authentication backend that only refuses: clients with many wrong passwords, and some names.

    It must be the first in `AUTHENTICATION_BACKENDS`.
    """

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """Raise `PermissionDenied`, after which Django calls no other backend, if the client has failed too often.

        Also raised if the name has a colon: such accounts are those of persons who log in at an identity provider.
        Otherwise the result is None, and Django calls the next backend.
        """
        if ":" in (credentials.get("username") or ""):
            raise PermissionDenied
        if request is not None:
            try:
                attempts.check(_client(request))
            except TooManyAttemptsError as error:
                raise PermissionDenied from error


@receiver(user_login_failed)
def count(request: HttpRequest | None = None, **values: Any) -> None:
    """Count a login that failed."""
    if request is not None:
        attempts.failed(_client(request))


def _client(request: HttpRequest) -> str:
    """The text by which `attempts` counts wrong passwords of this client. Invalid tokens are counted separately."""
    return f"login from {attempts.client_at(address_of(request.META))}"
