"""The token for requests to a deployment that refuses writes without one, where tools of the field look for it.

These are, in this order: the variable `BEARER_TOKEN`; the file that `BEARER_TOKEN_FILE` names; the file
`bt_u<uid>` in `XDG_RUNTIME_DIR`, and in /tmp. Source: WLCG Bearer Token Discovery.
"""

import os
from functools import cache
from pathlib import Path


@cache
def headers() -> dict[str, str]:
    """The header `Authorization` with the token; empty if there is none. Raises `OSError` if BEARER_TOKEN_FILE can't be read."""
    token = _token()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _token() -> str:
    if token := os.environ.get("BEARER_TOKEN", "").strip():
        return token
    if file := os.environ.get("BEARER_TOKEN_FILE"):
        return Path(file).read_text().strip()
    directories = [os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp"]  # noqa: S108 -- a place of the convention
    for directory in filter(None, directories):
        path = Path(directory) / f"bt_u{os.getuid()}"
        # In /tmp, another account could have created it.
        if path.is_file() and path.stat().st_uid == os.getuid():
            return path.read_text().strip()
    return ""
