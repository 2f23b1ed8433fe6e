"""What a process remembers about clients for a while: what it has verified, and attempts that failed."""

from typing import Any

from django.contrib.auth.signals import user_login_failed
from django.core.cache.backends.locmem import LocMemCache
from django.core.exceptions import PermissionDenied
from django.dispatch import receiver
from django.http import HttpRequest

from cdb_rest.observe.request_context import address_of
from cdb_rest.rules.errors import TooManyAttemptsError

# When there are more, the third that was used least recently goes: tokens are few, and many different ones are an attack.
MAX_ENTRIES = 10_000


def cache(name: str, seconds: float) -> LocMemCache:
    """A cache whose values expire after `seconds`, unless `set` is given another time. Each cache needs a name of its own."""
    return LocMemCache(name, {"TIMEOUT": seconds, "OPTIONS": {"MAX_ENTRIES": MAX_ENTRIES}})


LIMIT = 30
PERIOD_SECONDS = 60
_failures = cache("failures", PERIOD_SECONDS)


def client_at(address: str) -> str:
    """The address of the client, for `check_attempts` and `count_failure`.

    `address` may be a list of addresses, as in `X-Forwarded-For`. Then the result is the last one, which our proxy has
    added: the client itself can send the others.
    """
    return address.rpartition(",")[2].strip()


def check_attempts(client: str) -> None:
    """Raise `TooManyAttemptsError` if this client, any text by which failures are counted, has failed `LIMIT` times."""
    if _failures.get(client, 0) >= LIMIT:
        raise TooManyAttemptsError(
            f"Too many invalid tokens, wrong passwords or logins: {client}; try again in {PERIOD_SECONDS} seconds."
        )


def count_failure(client: str) -> None:
    """Count a failure of this client."""
    if not _failures.add(client, 1):
        _failures.incr(client)


def forget_failures() -> None:
    """Forget all failures that this process has counted. Tests use it."""
    _failures.clear()


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
                check_logins(request)
            except TooManyAttemptsError as error:
                raise PermissionDenied from error


@receiver(user_login_failed)
def count_failed_login(request: HttpRequest | None = None, **values: Any) -> None:
    """Count a login that failed."""
    if request is not None:
        count_failure(_client(request))


def check_logins(request: HttpRequest) -> None:
    """Raise `TooManyAttemptsError` if the client of the request has sent too many wrong passwords."""
    check_attempts(_client(request))


def _client(request: HttpRequest) -> str:
    """The text by which wrong passwords of this client are counted, apart from invalid tokens."""
    return f"login-{client_at(address_of(request.META))}"
