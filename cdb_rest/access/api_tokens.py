"""Verification of this service's own tokens."""

from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from cdb_rest.access import rules
from cdb_rest.access.memory import cache
from cdb_rest.models import ApiToken
from cdb_rest.rules.access import Principal, digest_of, is_token
from cdb_rest.rules.errors import InvalidTokenError, existing

# `last_used` is written at most once in this time.
USE_INTERVAL = timedelta(minutes=1)

# The age of the rules, in seconds, that is accepted for a token without a rule.
NEW_TOKEN_SECONDS = 0.1
_names = cache("token names", rules.REFRESH_SECONDS)


def verify(token: str) -> Principal:
    """The principal of a token. Raises `InvalidTokenError`, or `django.db.Error`.

    The name is found by the digest of the token, so the time that this takes says nothing about other tokens. The process
    remembers the name for `REFRESH_SECONDS`, so a revocation or the expiry takes effect within that time. The time of use
    (`last_used`) is recorded at most once a minute.
    """
    if not is_token(token):
        raise InvalidTokenError("The token is damaged: its checksum is wrong.")
    digest = digest_of(token)
    name: Any = _names.get_or_set(digest, lambda: _find(digest))
    # The rule of a token that was just created may be newer than the rules that this process knows.
    permissions = rules.current().of_token(name) or rules.current(NEW_TOKEN_SECONDS).of_token(name)
    return Principal(f"token:{name}", "token", permissions)


def forget() -> None:
    """Forget the names that this process remembers. Tests use it."""
    _names.clear()


def _find(digest: str) -> str:
    token = existing(ApiToken.objects.filter(digest=digest).first(), InvalidTokenError("The token is unknown."))
    if token.revoked is not None:
        raise InvalidTokenError(f"The token {token.name} was revoked.")
    now = timezone.now()
    if token.expires is not None and token.expires <= now:
        raise InvalidTokenError(f"The token {token.name} expired at {token.expires:%Y-%m-%dT%H:%M:%SZ}.")
    unused = Q(last_used=None) | Q(last_used__lt=now - USE_INTERVAL)
    ApiToken.objects.filter(unused, id=token.id).update(last_used=Now())
    return token.name
