"""Single requests by which a campaign prepares what it works on."""

import json
import urllib.error
import urllib.request
from typing import Any

from loadtests.service import PREFIX, ServiceError

PATIENCE_SECONDS = 600


def send(url: str, method: str, path: str, body: Any = None, *, also: tuple[int, ...] = ()) -> Any:
    """The parsed answer of a route of the API to a service at `url`, which must be 200, or one of `also`.

    Raises `ServiceError` with the answer otherwise.
    """
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310
        url + PREFIX + path, content, {"Content-Type": "application/json"}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310
            status, text = answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        with error:
            status, text = error.code, error.read().decode(errors="replace")
        if error.code not in also:
            raise ServiceError(f"{method} {path}: status {status}: {text[:300]}") from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise ServiceError(f"{method} {path}: status {status}, but no JSON: {text[:300]}") from error
