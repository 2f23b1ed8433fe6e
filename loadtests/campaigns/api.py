"""Single requests to the API, by which a campaign prepares and cleans up its data."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

from loadtests.service import PREFIX, ServiceError

TIMEOUT_SECONDS = 600
# The timeout of the request of `check_reachable`.
CONNECT_SECONDS = 10


def check_reachable(url: str) -> None:
    """Raise `ServiceError` with a one-line message unless a conditions database service responds at `url`."""
    try:
        send(url, "GET", "gtstatus", timeout=CONNECT_SECONDS)
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
    timeout: float = TIMEOUT_SECONDS,
) -> Any:
    """Send a request to the API of the service at `url` and return the parsed JSON of the response.

    `path` is relative to the prefix of the API. `body` is sent as JSON. `also` lists the error statuses that are
    accepted in addition to the successful ones (2xx). `timeout` is in seconds.

    Raises `ServiceError` with the start of the response if another status is returned or the body is not JSON, and
    `OSError` or `http.client.HTTPException` if the service does not respond.
    """
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310
        url + PREFIX + path, content, {"Content-Type": "application/json"}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
            status, text = response.status, response.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        with error:
            status, text = error.code, error.read().decode(errors="replace")
        if error.code not in also:
            raise ServiceError(f"{method} {path}: status {status}: {text[:300] or 'no body'}") from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise ServiceError(f"{method} {path}: status {status}, but not JSON: {text[:300] or 'no body'}") from error
