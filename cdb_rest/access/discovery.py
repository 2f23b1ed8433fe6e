"""OpenID Connect discovery: reads the endpoints of an issuer, and other JSON documents of the issuer."""

import json
import time
import urllib.request
from http.client import HTTPException
from typing import Any

from cdb_rest.access.issuers import Issuer, is_secure
from cdb_rest.access.memory import cache

PATH = "/.well-known/openid-configuration"
# The time for each part of a response, and for the whole of it.
PART_SECONDS = 2
WHOLE_SECONDS = 10
MAX_BYTES = 1_000_000


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error, because it could lead to a URL without TLS."""

    def redirect_request(self, *_arguments: Any) -> None:
        """No request follows."""


_opener = urllib.request.build_opener(_NoRedirects)
_documents = cache("discovery", 3600)


def forget() -> None:
    """Clear this process's cache of discovery documents. Tests use it."""
    _documents.clear()


def endpoint(issuer: Issuer, name: str) -> str:
    """The URL of an endpoint of the issuer. `name` is a key of the discovery document, such as `jwks_uri`.

    Fetches the discovery document and caches it in this process for an hour; failures are not cached. Raises the errors
    of `fetch_json`, and `ValueError` if the document names another issuer, or has no URL `name` that begins with https://.
    """
    document: Any = _documents.get_or_set(issuer.issuer, lambda: _fetch(issuer))
    url = document.get(name)
    if not isinstance(url, str) or not is_secure(url):
        raise ValueError(f"the discovery document must have {name}, a URL that begins with https:// (got {url!r})")
    return url


def fetch_json(url: str) -> Any:
    """Fetch a JSON document of an issuer. Redirects are not followed.

    `url` must begin with https://, except on this machine. A wait for data may take `PART_SECONDS`, and the body must
    arrive within `WHOLE_SECONDS` after the begin of the request and have at most `MAX_BYTES`.

    Raises `OSError` if the request fails, and `ValueError` if the URL or the response is not accepted.
    """
    if not is_secure(url):
        raise ValueError(f"{url} must begin with https://")
    deadline = time.monotonic() + WHOLE_SECONDS
    content = b""
    try:
        with _opener.open(url, timeout=PART_SECONDS) as response:
            while piece := response.read1(65536):
                content += piece
                if len(content) > MAX_BYTES:
                    raise ValueError(f"{url} has more than {MAX_BYTES:,} bytes")
                if time.monotonic() > deadline:
                    raise ValueError(f"{url} took more than {WHOLE_SECONDS} seconds")
        return json.loads(content)
    except (HTTPException, RecursionError) as error:
        raise ValueError(f"{url} sent an invalid response: {error!r}") from error


def _fetch(issuer: Issuer) -> dict[str, Any]:
    document = fetch_json(issuer.issuer.rstrip("/") + PATH)
    if not isinstance(document, dict) or document.get("issuer") != issuer.issuer:
        raise ValueError(f"the discovery document must name the issuer {issuer.issuer}")
    return document
