"""Login of persons at an identity provider (OpenID Connect), with mozilla-django-oidc: the authentication backend."""

import logging
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from mozilla_django_oidc.auth import OIDCAuthenticationBackend  # type: ignore[import-untyped]

from cdb_rest.access import discovery, issuers
from cdb_rest.access.jwt_tokens import permissions_of, verify_id_token
from cdb_rest.rules.errors import InvalidTokenError, existing

logger = logging.getLogger(__name__)

# The settings of mozilla-django-oidc that come from the issuer: its endpoints by their names in the discovery document.
ENDPOINTS = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}
FIXED = {
    "OIDC_USE_PKCE": True,
    "OIDC_USE_NONCE": True,
    "OIDC_TIMEOUT": discovery.PART_SECONDS,
    "OIDC_STORE_ACCESS_TOKEN": False,
    "OIDC_STORE_ID_TOKEN": False,
    "OIDC_PROXY": None,
    "OIDC_VERIFY_SSL": True,
    "OIDC_TOKEN_USE_BASIC_AUTH": False,
}

# Django's limit on the name of a user.
MAX_NAME_LENGTH = 150


def setting(name: str, *default: Any) -> Any:
    """A setting of mozilla-django-oidc: from the issuer for logins, or one of `FIXED`.

    `default` is the value for an unknown name. Without a default, an unknown name raises `KeyError`. If there is no
    issuer for logins, the result is the default or "". For an endpoint, raises the errors of `discovery.endpoint`.
    """
    issuer = issuers.for_login()
    if issuer is None:
        return default[0] if default else ""
    if name in ENDPOINTS:
        return discovery.endpoint(issuer, ENDPOINTS[name])
    own = {
        "OIDC_RP_CLIENT_ID": issuer.client_id,
        "OIDC_RP_CLIENT_SECRET": issuer.client_secret,
        "OIDC_RP_SCOPES": issuer.scope,
        "OIDC_RP_SIGN_ALGO": issuer.algorithms[0],
    }
    values = FIXED | own
    return values[name] if name in values or not default else default[0]


class OIDCBackend(OIDCAuthenticationBackend):  # type: ignore[misc]  # it has no types
    """The authentication backend for users of an identity provider.

    The name of a user is the name of the issuer, a colon, and the value of the claim `issuer.subject`.
    """

    get_settings = staticmethod(setting)

    def __init__(self) -> None:
        # The base class also reads the endpoints here, for each session and each login with a password of this service.
        self.UserModel = User

    def authenticate(self, request: Any, **credentials: Any) -> User | None:
        """The user for the callback of a login; None for other logins, and if the login is refused.

        Raises `OSError` or `ValueError` if the identity provider fails, and other errors if its response has unexpected
        types (`CallbackView` handles all of them). Raises `django.db.Error`.
        """
        if issuers.for_login() is None or request is None or "code_verifier" not in credentials:
            return None
        super().__init__()
        try:
            user: User | None = super().authenticate(request, **credentials)
        except InvalidTokenError as error:
            logger.warning("a login was refused: %s", error)
            return None
        return user

    def verify_token(self, token: str, **values: Any) -> dict[str, Any]:
        """The claims of the ID token, after verification of its signature, issuer, audience, expiry and nonce.

        Raises `InvalidTokenError`.
        """
        issuer = existing(issuers.for_login(), InvalidTokenError("No issuer for logins is configured."))
        return verify_id_token(token, issuer, values.get("nonce"))

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> User:
        """The user with the claims of the ID token (`payload`) and of the user info, which is requested here.

        A new user gets an account. The attribute `oidc_claims` of the result has the claims, for the session. Raises
        `InvalidTokenError` if the user info is that of another person, or if the tokens of the person were revoked.
        """
        issuer = existing(issuers.for_login(), InvalidTokenError("No issuer for logins is configured."))
        info = self.get_userinfo(access_token, id_token, payload)
        if info.get("sub") != payload.get("sub"):
            raise InvalidTokenError("The user info belongs to another person.")
        # The ID token is signed, so its claims take precedence.
        claims = info | payload
        name = f"{issuer.name}:{claims[issuer.subject]}"
        if len(name) > MAX_NAME_LENGTH:
            raise InvalidTokenError(
                f"The name of a person must have at most {MAX_NAME_LENGTH} characters (got {len(name)})."
            )
        user, _ = User.objects.get_or_create(username=name, defaults={"password": make_password(None)})
        # The login is refused if the tokens of the person were revoked.
        permissions_of(issuer, claims)
        user.oidc_claims = claims  # type: ignore[attr-defined]
        return user
