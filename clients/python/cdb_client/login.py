"""Login: a token from the identity provider (device flow of OAuth, RFC 8628) or from the user, checked and stored."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError

from cdb_client import errors, tokens
from cdb_client.config import Config
from cdb_client.transport import Transport, is_readable_by_others, pool_of, reason_of

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
# Between two requests, if the provider names no interval, and what is added if it asks to slow down (RFC 8628, 3.5).
INTERVAL_SECONDS = SLOWER_SECONDS = 5
# A lost response is no error; to ask again does no harm.
RETRY = urllib3.Retry(3, backoff_factor=0.2, allowed_methods=None)


def store(config: Config, token: str) -> dict[str, Any]:
    """Store a token for the server, after the service has accepted it. Returns the response to `whoami`.

    Raises `NotAllowedError` if the service does not know the token.
    """
    if is_readable_by_others(config.server):
        raise errors.NotAllowedError(f"A token is not sent over http, where others can read it. ({config.server})")
    token = token.strip()
    found: dict[str, Any] = Transport(replace(config, token=token)).get("whoami", identifies=True, about="token").json()
    if not found.get("method"):
        raise errors.NotAllowedError(f"The service did not identify you by this token. ({config.server})")
    tokens.store_token(config.server, token)
    return found


def device_flow(config: Config, show: Callable[[str, str, str | None], None]) -> str:
    """An access token of the issuer in the configuration, after the user has logged in there with a browser.

    `show` gets the address of the page, the code to type there, and an address that contains the code, or None. Raises
    `InputError` if the configuration has no issuer or the issuer has no device flow, `NotAllowedError` if the user refuses or
    does not log in in time, and `UnavailableError`.
    """
    form = {"scope": "openid", **config.login}
    issuer = form.pop("issuer", "").rstrip("/")
    if not issuer or "client_id" not in form:
        raise errors.InputError(
            "A login needs the address of the identity provider and a client id that is registered there: issuer and client_id "
            f"of the server in config.toml. ({config.server})"
        )
    pool = pool_of(issuer)

    def ask(url: str, form: dict[str, str] | None = None) -> dict[str, Any]:
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        method, body = ("POST", urlencode(form)) if form else ("GET", None)
        try:
            found = dict(pool.request(method, url, body=body, headers=headers, retries=RETRY).json())
        except HTTPError as error:
            raise errors.UnavailableError(f"{reason_of(error)} ({issuer})") from None
        except (ValueError, TypeError):
            raise errors.InputError(f"{url} gave no JSON. Is this an OpenID Connect provider? ({issuer})") from None
        if found.get("error") not in (None, "authorization_pending", "slow_down"):
            reason = found.get("error_description") or found["error"]
            raise errors.NotAllowedError(f"The identity provider refused the login: {reason}. ({issuer})")
        return found

    endpoints = ask(f"{issuer}/.well-known/openid-configuration")
    if "device_authorization_endpoint" not in endpoints:
        raise errors.InputError(f"The identity provider has no device flow. Store a token instead. ({issuer})")
    given = ask(endpoints["device_authorization_endpoint"], form)
    show(given["verification_uri"], given["user_code"], given.get("verification_uri_complete"))
    interval, ends = float(given.get("interval", INTERVAL_SECONDS)), time.monotonic() + float(given["expires_in"])
    polled = {"client_id": form["client_id"], "grant_type": GRANT, "device_code": given["device_code"]}
    while time.monotonic() + interval < ends:
        time.sleep(interval)
        found = ask(endpoints["token_endpoint"], polled)
        if "access_token" in found:
            return str(found["access_token"])
        if found.get("error") == "slow_down":
            interval += SLOWER_SECONDS
    raise errors.NotAllowedError(f"The code expired before you logged in. Try again. ({issuer})")
