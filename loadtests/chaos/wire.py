"""An HTTP client that distinguishes the ways in which a request can fail."""

import http.client
import json
from dataclasses import dataclass
from typing import Any

# Longer than all timeouts of the service.
TIMEOUT_SECONDS = 90


class DroppedError(Exception):
    """There was no complete response: the connection was refused, reset, cut or silent, or the response is not JSON."""


@dataclass(frozen=True)
class Reply:
    """A complete response: status, headers by lower-case name, body, and the parsed body."""

    status: int
    headers: dict[str, str]
    body: bytes
    json: Any

    @property
    def is_refusal(self) -> bool:
        """Whether it is a valid response to overload or an outage: 504, JSON with detail and code, Retry-After."""
        has_members = isinstance(self.json, dict) and {"detail", "code"} <= set(self.json)
        return self.status == 504 and has_members and self.headers.get("retry-after", "").isdecimal()


class Client:
    """A client of the service, with a persistent connection (`keep_alive`) or a new one for each request.

    HTTP allows a server to close an idle connection. If that is detected before the first byte of a response,
    the request is sent again over a new connection, and `reconnected` counts it.
    """

    def __init__(self, port: int, *, keep_alive: bool) -> None:
        self.reconnected = 0
        self._port = port
        self._keep_alive = keep_alive
        self._connection: http.client.HTTPConnection | None = None

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send a request and return the response. Raises `DroppedError` without a complete response."""
        if body is not None:
            headers |= {"Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        is_reused = self._connection is not None
        try:
            return self._request(method, path, content, headers)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
            self.close()
            if not is_reused:
                raise DroppedError(f"{method} {path}: {error!r}") from error
            self.reconnected += 1
            return self.request(method, path, body, **headers)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise DroppedError(f"{method} {path}: {error!r}") from error

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _request(self, method: str, path: str, content: bytes | None, headers: dict[str, str]) -> Reply:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_SECONDS)
        self._connection.request(method, f"/api/cdb_rest/{path}", content, headers)
        response = self._connection.getresponse()
        try:
            text = response.read()
        except ConnectionResetError as error:
            # The response had begun, so this is not an idle connection that was closed.
            raise DroppedError(f"{method} {path}: {error!r}") from error
        reply = Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, text, json.loads(text))
        if not self._keep_alive or response.will_close:
            self.close()
        return reply
