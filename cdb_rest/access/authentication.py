"""Authentication: the principal of a request, from its token, its session, its proxy's user or its network."""

import re
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.base import SessionBase

from cdb_rest.access import api_tokens, issuers, jwt_tokens, memory, rules
from cdb_rest.access.memory import cache
from cdb_rest.observe.request_context import actor_of, address_of, context_of, user_of
from cdb_rest.rules.access import ANY, PREFIX, Permission, Principal, Role, digest_of
from cdb_rest.rules.errors import InvalidTokenError, TooManyAttemptsError, quoted

KEY = "cdb.principal"
# A longer header than any issuer's tokens need. gunicorn and nginx have limits of about this size, too.
MAX_TOKEN_LENGTH = 8000
SESSION = "session"
# The schemes that a message may show.
SCHEME = re.compile("[A-Za-z-]{1,12}")
# The paths of feeds, whose readers know no other scheme than Basic.
FEED = re.compile("/(tags/[^/]+/)?history[.]atom/?")
# Whether tokens were valid at their last verification. The limit on invalid tokens does not apply to those that were, because
# many clients can have the same address.
_valid = cache("valid tokens", 600)
# The key of a session with the claims of a person who logged in at an identity provider.
CLAIMS = "oidc_claims"


def principal_of(environ: dict[str, Any]) -> Principal:
    """The principal of the request with this WSGI environment, never None. It becomes the actor of the request.

    A client that cannot be identified gets a principal without permissions, whose `method` is empty. The principal is
    stored in `environ`, so that a second call costs nothing.

    If `CDB_OPEN_WRITES` is on, the principal may do everything, and an invalid token counts as none. Otherwise an
    invalid or revoked token raises `InvalidTokenError`, and too many of them raise `TooManyAttemptsError`. Raises
    `django.db.Error`.
    """
    principal: Principal | None = environ.get(KEY)
    if principal is None:
        principal = environ[KEY] = _principal(environ)
        context_of(environ).identify(principal.name, is_known=bool(principal.method))
    return principal


def _principal(environ: Mapping[str, Any]) -> Principal:
    if not settings.CDB_OPEN_WRITES:
        return _identify(environ) or Principal(actor_of(environ), lacks=_lack(environ))
    try:
        # The rules, which would give permissions to proxies' users and networks, are not needed.
        found = _by_token(environ) or _by_session(environ)
    except (InvalidTokenError, TooManyAttemptsError):
        found = None
    if found is None:
        return Principal(actor_of(environ), may_everything=True)
    return replace(found, may_everything=True)


def _identify(environ: Mapping[str, Any]) -> Principal | None:
    """The principal, or None for an unknown client. Raises `InvalidTokenError` or `TooManyAttemptsError`."""
    return _by_token(environ) or _by_session(environ) or _by_proxy(environ) or _by_network(environ)


def _by_token(environ: Mapping[str, Any]) -> Principal | None:
    token = _token(environ)
    if token is None:
        return None
    client, digest = memory.client_at(address_of(environ)), digest_of(token)
    was_valid = _valid.get(digest)
    if not was_valid:
        memory.check_attempts(client)
    try:
        principal = _verify(token)
    except InvalidTokenError:
        if was_valid:
            _valid.set(digest, False)
        memory.count_failure(client)
        raise
    _valid.set(digest, True)
    return principal


def _token(environ: Mapping[str, Any]) -> str | None:
    """The token of the scheme Bearer; for a feed also a token of this service as the password of the scheme Basic. Else None.

    Basic elsewhere, and other schemes, are for a proxy that passes the header on.
    """
    header: str = environ.get("HTTP_AUTHORIZATION", "")
    scheme, _, text = header.partition(" ")
    text = text.strip()
    if scheme.lower() == "bearer":
        return text
    if scheme.lower() == "basic" and is_feed(environ):
        with suppress(ValueError):
            password = b64decode(text, validate=True).decode().partition(":")[2]
            return password if password.startswith(PREFIX) else None
    return None


def is_feed(environ: Mapping[str, Any]) -> bool:
    """Whether a request reads an Atom feed, and so may have a token as the password of the scheme Basic."""
    return environ["REQUEST_METHOD"] in ("GET", "HEAD") and FEED.fullmatch(environ["PATH_INFO"]) is not None


def _lack(environ: Mapping[str, Any]) -> str:
    """What is wrong with the Authorization header of a request without a token. A header that may be a secret is not shown."""
    header = environ.get("HTTP_AUTHORIZATION", "").strip()
    if is_feed(environ):
        return "the request has no token; send one as the password of the scheme Basic"
    if not header:
        return "the request has no header Authorization; send Authorization: Bearer <token>"
    scheme, separator, _ = header.partition(" ")
    if separator and SCHEME.fullmatch(scheme):
        return f"the scheme of the header Authorization is {quoted(scheme)}; use Bearer"
    return "the header Authorization has no scheme; use Bearer"


def _verify(token: str) -> Principal:
    if len(token) > MAX_TOKEN_LENGTH:
        raise InvalidTokenError(f"The token must have at most {MAX_TOKEN_LENGTH} characters (got {len(token)}).")
    return api_tokens.verify(token) if token.startswith(PREFIX) else jwt_tokens.verify(token)


def _by_session(environ: Mapping[str, Any]) -> Principal | None:
    """The user who has logged in with a browser; None if there is none, or if the account is not active.

    A superuser is an administrator. Raises `InvalidTokenError` if the user logged in at an identity provider and the
    tokens of the user were revoked.
    """
    if settings.SESSION_COOKIE_NAME not in environ.get("HTTP_COOKIE", ""):
        return None
    try:
        cookie = SimpleCookie(environ["HTTP_COOKIE"]).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return None
    if cookie is None:
        return None
    session = import_module(settings.SESSION_ENGINE).SessionStore(cookie.value)
    # `get_user` reads no other attribute of a request than the session.
    user = get_user(SimpleNamespace(session=session))  # type: ignore[arg-type]
    # Not every backend checks whether the account is active.
    if not user.is_authenticated or not user.is_active:
        return None
    groups = list(user.groups.values_list("name", flat=True))
    permissions = rules.current().of_user(user.get_username(), groups) + permissions_of_session(session)
    if user.is_superuser:
        permissions = (Permission(Role.ADMINISTRATOR, "superuser", ANY, ANY), *permissions)
    return Principal(user.get_username(), SESSION, permissions)


def permissions_of_session(session: SessionBase) -> tuple[Permission, ...]:
    """The permissions that the claims of a person who logged in at an identity provider give; none for other sessions.

    The claims are those that `CallbackView` has stored in the session. They give nothing once another issuer, or another
    claim for the subject, is configured: the person must log in again. Raises `InvalidTokenError` if the tokens of the
    person were revoked, or `django.db.Error`.
    """
    claims, issuer = session.get(CLAIMS), issuers.for_login()
    if not claims or issuer is None or claims.get("iss") != issuer.issuer or issuer.subject not in claims:
        return ()
    return jwt_tokens.permissions_of(issuer, claims)


def _by_proxy(environ: Mapping[str, Any]) -> Principal | None:
    name = user_of(environ)
    return Principal(name, "proxy", rules.current().of_user(name)) if name else None


def _by_network(environ: Mapping[str, Any]) -> Principal | None:
    try:
        address = ip_address(address_of(environ).strip())
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    name, permissions = rules.current().of_network(mapped or address)
    return Principal(f"network:{name} ({address})", "network", permissions) if name else None
