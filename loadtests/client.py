"""The HTTP client of the load tests. It measures each call, and distinguishes incomplete responses from error statuses."""

import http.client
import json
import os
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from loadtests.service import PREFIX, ServiceError

TIMEOUT_SECONDS = 1800
# The timeout of the request of `check_reachable`.
CONNECT_SECONDS = 10.0
STALE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class DroppedError(ServiceError):
    """There was no complete response: the connection was refused, reset, cut or silent."""


@dataclass(frozen=True)
class Response:
    """A complete response: status, headers by lower-case name, body, and the milliseconds until its last byte."""

    status: int
    headers: dict[str, str]
    body: bytes
    ms: float = 0.0

    @cached_property
    def json(self) -> Any:
        """The parsed body. Raises `ValueError` if it is not JSON."""
        return json.loads(self.body)

    @property
    def is_refusal(self) -> bool:
        """Whether it is a valid response to overload or an outage: 504, JSON with detail and code, Retry-After."""
        if self.status != 504 or not self.headers.get("retry-after", "").isdecimal():
            return False
        return isinstance(self.json, dict) and {"detail", "code"} <= set(self.json)


class Client:
    """A client of the service at `host`, with a persistent connection (`keep_alive`) or a new one for each request.

    HTTP allows a server to close an idle connection. If that is detected before the first byte of a response,
    the request is sent again over a new connection, and `reconnected` counts it.
    """

    def __init__(self, host: str, *, keep_alive: bool = True, timeout: float = TIMEOUT_SECONDS) -> None:
        self.reconnected = 0
        self.host = host
        self._address = urlsplit(host)
        self._keep_alive = keep_alive
        self._timeout = timeout
        self._headers = authorization()
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        """Send a request to a route of the API. Raises `DroppedError` without a complete response."""
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        begin = time.perf_counter()
        try:
            response = self._send(method, PREFIX + path, content, self._headers | headers)
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise DroppedError(f"{method} {path}: {error!r}") from error
        ms = (time.perf_counter() - begin) * 1000
        if not self._keep_alive or response.will_close:
            self.close()
        return Response(response.status, {name.lower(): value for name, value in response.getheaders()}, text, ms)

    def call(self, method: str, path: str, body: Any = None, *, also: Sequence[int] = ()) -> Response:
        """Send a request over a new connection, so that it is never sent twice.

        Raises `ServiceError` with the start of the response unless the status is successful (2xx) or in `also`.
        """
        self.close()
        response = self.request(method, path, body)
        if not 200 <= response.status < 300 and response.status not in also:
            text = response.body[:300].decode(errors="replace") or "no body"
            raise ServiceError(f"{method} {path}: status {response.status}: {text}")
        return response

    def _send(self, method: str, path: str, content: bytes | None, headers: dict[str, str]) -> http.client.HTTPResponse:
        """Send a request and return the beginning of the response."""
        is_reused = self._connection is not None
        if self._connection is None:
            kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
            self._connection = kinds[self._address.scheme](self._address.netloc, timeout=self._timeout)
        try:
            self._connection.request(method, self._address.path + path, content, headers)
            return self._connection.getresponse()
        except STALE:
            self.close()
            if not is_reused:
                raise
            self.reconnected += 1
            return self._send(method, path, content, headers)


class Addresses:
    """A client of one service with several addresses: after a request without a response it turns to the next one.

    If it `stores` responses, it revalidates them like a browser, and takes a stored response for a 304.
    """

    def __init__(self, clients: Sequence[Client], *, stores: bool = False) -> None:
        self._clients = deque(clients)
        self._stores, self._stored = stores, dict[str, Response]()

    @property
    def host(self) -> str:
        """The address of the next request."""
        return self._clients[0].host

    @property
    def reconnected(self) -> int:
        """How often requests were sent again."""
        return sum(client.reconnected for client in self._clients)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        """Send a request, as `Client.request` does."""
        stored = self._stored.get(path)
        if stored and method == "GET":
            headers["If-None-Match"] = stored.headers["etag"]
        try:
            response = self._clients[0].request(method, path, body, **headers)
        except DroppedError:
            self._clients.rotate(-1)
            raise
        if response.status >= 500:
            self._clients.rotate(-1)
        if stored and response.status == 304:
            return stored
        if self._stores and response.status == 200 and "etag" in response.headers:
            self._stored[path] = response
        return response


@cache
def authorization() -> dict[str, str]:
    """The header `Authorization` with the token of a deployment that refuses writes without one; empty if there is none.

    The token is that of the variable `BEARER_TOKEN`, or in the file that `BEARER_TOKEN_FILE` names (WLCG Bearer Token
    Discovery). Raises `OSError` if the file cannot be read.
    """
    token, file = os.environ.get("BEARER_TOKEN", "").strip(), os.environ.get("BEARER_TOKEN_FILE")
    if not token and file:
        token = Path(file).read_text().strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def check_reachable(host: str) -> None:
    """Raise `ServiceError` with a one-line message unless a conditions database service responds at `host`."""
    try:
        _ = Client(host, timeout=CONNECT_SECONDS).call("GET", "gtstatus").json
    except DroppedError as error:
        raise ServiceError(f"cannot connect to {host}: {error.__cause__}") from error
    except (ServiceError, ValueError) as error:
        raise ServiceError(f"{host} does not respond as a cdb service: {' '.join(str(error).split())}") from error


def lookup_path(tag: str, moment: tuple[int, int], route: str = "payloadiovs/") -> str:
    """The path of a lookup, without the prefix of the API."""
    major, minor = moment
    return f"{route}?gtName={quote(tag)}&majorIOV={major}&minorIOV={minor}"
