"""Tokens (JWT) of identity providers: their verification by PyJWT, which is remembered, their revocation and permissions."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from cdb_rest.access import rules
from cdb_rest.access.issuers import SYMMETRIC, Issuer, configured
from cdb_rest.access.memory import cache
from cdb_rest.rules.access import Permission, Principal, digest_of
from cdb_rest.rules.errors import InvalidTokenError

# A verified token is remembered until it expires, at most for this time. Each request applies revocations and rules.
VERIFIED_SECONDS = 600
# Django's names of users have up to 150 characters. That of a person is the issuer's name, a colon and the subject.
MAX_SUBJECT_LENGTH = 100
_verified = cache("verified tokens", VERIFIED_SECONDS)


def verify(token: str) -> Principal:
    """The principal of a token. Raises `InvalidTokenError`, or `django.db.Error`."""
    if not configured():
        raise InvalidTokenError("This service accepts no tokens of this kind: no issuer is configured.")
    digest = digest_of(token)
    issuer, claims = _verified.get(digest) or _verify(token, digest)
    return Principal(f"{issuer.name}:{claims[issuer.subject]}", "jwt", permissions_of(issuer, claims))


def permissions_of(issuer: Issuer, claims: dict[str, Any]) -> tuple[Permission, ...]:
    """The permissions of verified claims, which must have the claim `issuer.subject`.

    Raises `InvalidTokenError` if the token was revoked, or `django.db.Error`.
    """
    access = rules.current()
    _check_revoked(access, issuer, claims, str(claims[issuer.subject]))
    return access.of_claims(issuer.name, claims)


def forget() -> None:
    """Forget the tokens that this process remembers. Tests use it."""
    _verified.clear()


def _verify(token: str, digest: str) -> tuple[Issuer, dict[str, Any]]:
    """Verify a token, and remember its issuer and claims. Raises `InvalidTokenError`."""
    import jwt  # 40 ms and 10 MB, which only services with issuers need

    try:
        unverified = jwt.decode_complete(token, options={"verify_signature": False})
    except (jwt.PyJWTError, RecursionError) as error:
        raise InvalidTokenError(f"The token is not a JWT ({error}).") from error
    header, payload = unverified["header"], unverified["payload"]
    issuer = _issuer_of(payload, header)
    claims = _decode(token, issuer, header, issuer.audience)
    now = time.time()
    # Python compares any whole number with a float, but does not convert it.
    lifetime = min(claims["exp"], now + VERIFIED_SECONDS) + issuer.leeway_seconds - now
    _verified.set(digest, (issuer, claims), min(lifetime, VERIFIED_SECONDS))
    return issuer, claims


def verify_id_token(token: str, issuer: Issuer, nonce: str | None) -> dict[str, Any]:
    """The claims of an ID token, which an issuer made for this service when a person logged in.

    `issuer` is the issuer for logins, and `nonce` is that of the login; without one no token is valid. Raises
    `InvalidTokenError`, also if the token was made for another login or another client.
    """
    import jwt

    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, RecursionError) as error:
        raise InvalidTokenError(f"The ID token is not a JWT ({error}).") from error
    if header.get("alg") not in issuer.algorithms:
        raise InvalidTokenError(f"The ID token must be signed with {' or '.join(issuer.algorithms)}.")
    claims = _decode(token, issuer, header, (issuer.client_id,))
    if claims.get("azp", issuer.client_id) != issuer.client_id:
        raise InvalidTokenError("The ID token was made for another client.")
    if not nonce or claims.get("nonce") != nonce:
        raise InvalidTokenError("The ID token belongs to another login.")
    return claims


def _decode(token: str, issuer: Issuer, header: dict[str, Any], audience: tuple[str, ...]) -> dict[str, Any]:
    """The claims of a token, after verification of its signature and its claims. Raises `InvalidTokenError`."""
    import jwt

    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            _key(issuer, header),
            # Those that are configured. The header of the token must not choose the algorithm.
            algorithms=list(issuer.algorithms),
            issuer=issuer.issuer or None,
            audience=list(audience) or None,
            leeway=issuer.leeway_seconds,
            options={"require": ["exp"], "verify_aud": bool(audience), "verify_sub": False, "verify_jti": False},
        )
    except (jwt.PyJWTError, OverflowError) as error:
        raise InvalidTokenError(f"The token of {issuer.name} is not valid: {error}.") from error
    # PyJWT accepts texts, too.
    if not all(isinstance(claims.get(time_claim, 0), int | float) for time_claim in ("exp", "nbf", "iat")):
        raise InvalidTokenError(f"The times in a token of {issuer.name} must be numbers.")
    if not isinstance(claims.get("jti", ""), str):
        raise InvalidTokenError(f"The claim jti of a token of {issuer.name} must be a text.")
    subject = claims.get(issuer.subject)
    # It becomes the actor in the change log and in log files.
    if not (isinstance(subject, str) and 0 < len(subject) <= MAX_SUBJECT_LENGTH and subject.isprintable()):
        raise InvalidTokenError(
            f"The claim {issuer.subject} of a token of {issuer.name} must be a name of 1 to {MAX_SUBJECT_LENGTH} "
            "printable characters."
        )
    return claims


def _issuer_of(payload: Any, header: dict[str, Any]) -> Issuer:
    """The configured issuer that the token names. Raises `InvalidTokenError`."""
    named = payload.get("iss", "")
    for issuer in configured():
        if issuer.issuer == named:
            break
    else:
        raise InvalidTokenError("This service does not trust the issuer of the token.")
    if header.get("alg") not in issuer.algorithms:
        raise InvalidTokenError(f"The token must be signed with {' or '.join(issuer.algorithms)}.")
    return issuer


def _key(issuer: Issuer, header: dict[str, Any]) -> Any:
    if issuer.algorithms == (SYMMETRIC,):
        return issuer.secret
    from cdb_rest.access import keys

    return keys.find(issuer, header.get("kid"), header["alg"])


def _check_revoked(access: rules.Rules, issuer: Issuer, claims: dict[str, Any], subject: str) -> None:
    if (issuer.name, "jti", str(claims.get("jti", ""))) in access.revoked:
        raise InvalidTokenError("The token was revoked.")
    since = access.revoked.get((issuer.name, "sub", subject))
    # The issuer's clock may be ahead.
    if since is not None and _issued(claims) <= since + timedelta(seconds=issuer.leeway_seconds):
        raise InvalidTokenError(f"The tokens of {subject} were revoked at {since:%Y-%m-%dT%H:%M:%SZ}.")


def _issued(claims: dict[str, Any]) -> datetime:
    """The time at which the token was issued; without the claim `iat`, 1970, so that each revocation applies."""
    return datetime.fromtimestamp(max(claims.get("iat", 0), 0), UTC)
