"""A limit on wrong passwords, in addition to that of nginx."""

from typing import Any

from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import PermissionDenied
from django.dispatch import receiver
from django.http import HttpRequest

from cdb_rest.domain.errors import TooManyAttemptsError
from cdb_rest.identity import attempts
from cdb_rest.observe.request_context import address_of


class LimitedBackend:
    """An authentication backend that knows no user. It is asked first, and refuses a client with many wrong passwords."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """Raise `PermissionDenied`, after which no other backend is asked, if the client has failed too often.

        The same if the name has a colon: such accounts are those of persons who log in at an identity provider.
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
    """The client. A limit on tokens does not count for passwords, and the other way round."""
    return f"login from {attempts.client_at(address_of(request.META))}"
