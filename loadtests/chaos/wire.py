"""Asking the service as its clients do, and telling apart what can happen to a request on its way."""

import http.client
import json
from dataclasses import dataclass
from typing import Any

# Longer than any limit that the service keeps itself.
PATIENCE_SECONDS = 90


class DroppedError(Exception):
    """The request got no whole answer: the connection was refused, reset, cut or silent, or the answer was no JSON."""


@dataclass(frozen=True)
class Reply:
    """A whole answer: its status, headers by lower-case name, bytes and what they say as JSON."""

    status: int
    headers: dict[str, str]
    body: bytes
    json: Any

    @property
    def is_refusal(self) -> bool:
        """Whether it is what overload or an outage may be answered with: 504, JSON with its two members, Retry-After."""
        says = isinstance(self.json, dict) and {"detail", "code"} <= set(self.json)
        return self.status == 504 and says and self.headers.get("retry-after", "").isdecimal()


class Asker:
    """One client. `keeps` says whether it keeps its connection, or opens one for each request, as most clients do.

    A kept connection may have been closed while it was idle, which HTTP allows: when that shows before a byte of the answer,
    the request is sent again on a new one, and `reconnected` counts it.
    """

    def __init__(self, port: int, *, keeps: bool) -> None:
        self.reconnected = 0
        self._port = port
        self._keeps = keeps
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """The answer to a request. Raises `DroppedError` if none came."""
        if body is not None:
            headers |= {"Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        is_reused = self._connection is not None
        try:
            return self._ask(method, path, content, headers)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
            self.close()
            if not is_reused:
                raise DroppedError(f"{method} {path}: {error!r}") from error
            self.reconnected += 1
            return self.ask(method, path, body, **headers)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise DroppedError(f"{method} {path}: {error!r}") from error

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, method: str, path: str, content: bytes | None, headers: dict[str, str]) -> Reply:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_SECONDS)
        self._connection.request(method, f"/api/cdb_rest/{path}", content, headers)
        response = self._connection.getresponse()
        try:
            text = response.read()
        except ConnectionResetError as error:
            # Not before a byte of the answer, so it is no idle connection that was closed.
            raise DroppedError(f"{method} {path}: {error!r}") from error
        reply = Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, text, json.loads(text))
        if not self._keeps or response.will_close:
            self.close()
        return reply
