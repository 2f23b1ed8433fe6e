"""Single requests by which a campaign prepares what it works on."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

from loadtests.service import PREFIX, ServiceError

PATIENCE_SECONDS = 600
# Of the request that finds out whether there is a service at all.
CONNECT_SECONDS = 10


def check_reachable(url: str) -> None:
    """Raises `ServiceError`, in one line, unless a cdb service responds at `url`."""
    try:
        send(url, "GET", "gtstatus", patience=CONNECT_SECONDS)
    except (OSError, http.client.HTTPException) as error:
        raise ServiceError(f"cannot connect to {url}: {getattr(error, 'reason', error)}") from error
    except ServiceError as error:
        raise ServiceError(f"{url} does not respond as a cdb service: {' '.join(str(error).split())}") from error


def send(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    also: tuple[int, ...] = (),
    patience: float = PATIENCE_SECONDS,
) -> Any:
    """The parsed answer of a route of the API to a service at `url`, which must be 200, or one of `also`.

    Raises `ServiceError` with the answer otherwise.
    """
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310
        url + PREFIX + path, content, {"Content-Type": "application/json"}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=patience) as answer:  # noqa: S310
            status, text = answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        with error:
            status, text = error.code, error.read().decode(errors="replace")
        if error.code not in also:
            raise ServiceError(f"{method} {path}: status {status}: {text[:300] or 'no body'}") from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise ServiceError(f"{method} {path}: status {status}, but no JSON: {text[:300] or 'no body'}") from error
