"""Login: a token from the identity provider (device flow of OAuth, RFC 8628) or from the user, checked and stored."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError

from cdb_client import errors, tokens
from cdb_client.config import Config
from cdb_client.transport import CONNECT_SECONDS, READ_SECONDS, Transport, is_readable_by_others, make_pool, reason_of

FORM = "application/x-www-form-urlencoded"
# The members of a response that starts a device flow (RFC 8628, 3.2).
NEEDED = {"device_code", "user_code", "verification_uri", "expires_in"}
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
# Between two questions, if the provider names no interval, and what is added if it asks to slow down (RFC 8628, 3.5).
INTERVAL_SECONDS = SLOWER_SECONDS = 5


def store(config: Config, token: str) -> dict[str, Any]:
    """Store a token for the server, after the service has accepted it. Returns the response to `whoami`.

    Raises `NotAllowedError` if the service does not know the token.
    """
    if is_readable_by_others(config.server):
        raise errors.NotAllowedError(f"A token is not sent over http, where others can read it. ({config.server})")
    checked = replace(config, token=token.strip())
    found: dict[str, Any] = Transport(checked).get("whoami", identifies=True, about="token").json()
    if not found.get("method"):
        raise errors.NotAllowedError(f"The service did not identify you by this token. ({config.server})")
    tokens.store_token(config.server, token.strip())
    return found


def device_flow(config: Config, show: Callable[[str, str, str | None], None]) -> str:
    """An access token of the issuer in the configuration, after the user has logged in there with a browser.

    `show` gets the address of the page, the code to type there, and an address that contains the code, or None. Raises
    `InputError` if the configuration has no issuer or the issuer has no device flow, `NotAllowedError` if the user refuses or
    does not log in in time, and `UnavailableError`.
    """
    if not (config.issuer and config.client_id):
        raise errors.InputError(
            "A login needs the address of the identity provider and a client id that is registered there: issuer and client_id "
            f"of the server in config.toml. ({config.server})"
        )
    issuer = _Issuer(config.issuer)
    endpoints = issuer.discover()
    if "device_authorization_endpoint" not in endpoints:
        raise errors.InputError(f"The identity provider has no device flow. Store a token instead. ({config.issuer})")
    asked = {"client_id": config.client_id, "scope": config.scope}
    asked |= {"audience": config.audience} if config.audience else {}
    status, given = issuer.post(endpoints["device_authorization_endpoint"], asked)
    if status != 200 or not given.keys() >= NEEDED:
        raise issuer.refused(given, status)
    show(given["verification_uri"], given["user_code"], given.get("verification_uri_complete"))
    ends = time.monotonic() + float(given["expires_in"])
    interval = float(given.get("interval", INTERVAL_SECONDS))
    polled = {"client_id": config.client_id, "grant_type": GRANT, "device_code": given["device_code"]}
    while time.monotonic() + interval < ends:
        time.sleep(interval)
        status, found = issuer.post(endpoints["token_endpoint"], polled, is_repeated=True)
        if status == 200 and "access_token" in found:
            return str(found["access_token"])
        error = found.get("error")
        if error == "slow_down":
            interval += SLOWER_SECONDS
        elif error == "expired_token":
            break
        elif error != "authorization_pending":
            raise issuer.refused(found, status)
    raise errors.NotAllowedError(f"The code expired before you logged in. Try again. ({config.issuer})")


class _Issuer:
    """The requests to an identity provider."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        self._pool = make_pool(self._address)

    def discover(self) -> Mapping[str, Any]:
        status, found = self._ask("GET", f"{self._address}/.well-known/openid-configuration")
        if status != 200 or "token_endpoint" not in found:
            raise errors.InputError(f"This is not the address of an OpenID Connect provider. ({self._address})")
        return found

    def post(self, url: str, form: Mapping[str, str], *, is_repeated: bool = False) -> tuple[int, Mapping[str, Any]]:
        """The status and the JSON of a response. If it `is_repeated` anyway, a lost response is no error."""
        try:
            return self._ask("POST", url, form)
        except errors.UnavailableError:
            if not is_repeated:
                raise
            return 0, {"error": "slow_down"}

    def refused(self, found: Mapping[str, Any], status: int) -> errors.CdbError:
        reason = found.get("error_description") or found.get("error") or f"status {status}"
        return errors.NotAllowedError(f"The identity provider refused the login: {reason}. ({self._address})")

    def _ask(self, method: str, url: str, form: Mapping[str, str] | None = None) -> tuple[int, Mapping[str, Any]]:
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        body = urlencode(form) if form else None
        headers = {"Accept": "application/json"} | ({"Content-Type": FORM} if form else {})
        try:
            response = self._pool.request(method, url, body=body, headers=headers, timeout=timeout)
            found = json.loads(response.data)
        except HTTPError as error:
            raise errors.UnavailableError(f"{reason_of(error)} ({self._address})") from None
        except ValueError:
            found = {}
        return response.status, found if isinstance(found, dict) else {}
