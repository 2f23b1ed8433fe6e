"""OpenID Connect discovery: the endpoints of an issuer, and JSON documents from it."""

import json
import time
import urllib.request
from typing import Any

from cdb_rest.identity.cache import Cache
from cdb_rest.identity.issuers import Issuer, is_secure

PATH = "/.well-known/openid-configuration"
# The time for each part of a response, and for the whole of it.
PART_SECONDS = 2
WHOLE_SECONDS = 10
MAX_BYTES = 1_000_000

_documents = Cache[dict[str, Any]](3600)


def forget() -> None:
    """Forget the documents that are remembered."""
    _documents.clear()


def endpoint(issuer: Issuer, name: str) -> str:
    """An endpoint of the issuer by its name in the discovery document, such as `jwks_uri`.

    The document is remembered for an hour. Raises `OSError` or `ValueError`.
    """
    document = _documents.get(issuer.issuer) or _documents.put(issuer.issuer, _fetch(issuer))
    url = document.get(name)
    if not isinstance(url, str):
        raise ValueError(f"the discovery document has no {name}")
    return url


def fetch_json(url: str) -> Any:
    """The JSON document at a URL of an issuer. Raises `OSError` or `ValueError`."""
    if not is_secure(url):
        raise ValueError(f"{url} must begin with https://")
    deadline = time.monotonic() + WHOLE_SECONDS
    with urllib.request.urlopen(url, timeout=PART_SECONDS) as response:  # noqa: S310 -- HTTP only
        content = b""
        while piece := response.read1(65536):
            content += piece
            if len(content) > MAX_BYTES:
                raise ValueError(f"{url} has more than {MAX_BYTES:,} bytes")
            if time.monotonic() > deadline:
                raise ValueError(f"{url} took more than {WHOLE_SECONDS} seconds")
    return json.loads(content)


def _fetch(issuer: Issuer) -> dict[str, Any]:
    document = fetch_json(issuer.issuer.rstrip("/") + PATH)
    if not isinstance(document, dict) or document.get("issuer") != issuer.issuer:
        raise ValueError(f"the discovery document must name the issuer {issuer.issuer}")
    return document
