"""Patches of gunicorn: error responses in JSON, unescaped paths, and small responses sent in one piece.

gunicorn offers no setting for any of it, so `install` replaces one function and wraps some methods.
"""

import json
import re
from collections.abc import Callable
from socket import socket
from typing import Any

import gunicorn.util
from gunicorn.http.message import Request
from gunicorn.http.wsgi import Response

from cdb_rest.http import security
from cdb_rest.observe.exchange import Exchange, current
from cdb_rest.wsgi.observed import HEADER

# What may not stand in a request's target as it is, but does in requests of clients that escape nothing.
UNESCAPED = re.compile(rb"[\x20\x80-\xff]")

SECURITY_HEADERS = "".join(f"{name}: {value}\r\n" for name, value in security.HEADERS.items())

# Our words where gunicorn's are about its own code.
DETAILS = {
    414: "The request line is too long; at most 8190 bytes are accepted.",
    431: "The header fields are too many or too long; at most 100 of 8190 bytes each are accepted.",
}

# The name that the client gave its request, among headers that can't be read.
REQUEST_ID = re.compile(rb"^X-Request-ID:[ \t]*([!-~]+)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)

# Up to this size a piece of a body is copied behind the headers, to be sent with them.
SENT_TOGETHER_BYTES = 256 * 1024


def install() -> None:
    """Answer refused requests in JSON, accept paths that arrive unescaped, and send small responses in one piece."""
    gunicorn.util.write_error = write_json_error
    # Methods are replaced on purpose, which mypy refuses.
    Request.parse_request_line = _escaping(Request.parse_request_line)  # type: ignore[method-assign, assignment]
    Request.parse_headers = _recording_refused(Request.parse_headers)  # type: ignore[method-assign]
    Response.write = _sending_together(Response.write)  # type: ignore[method-assign, assignment]


def write_json_error(sock: socket, status_int: int, reason: str, mesg: str) -> None:
    """Send the response to a request that gunicorn refuses: 400 for every error of the client."""
    # Imported late: the directory of the counts is known only after the application is loaded.
    from cdb_rest.metrics import counts

    exchange = current.get() or Exchange({})
    status, code = (500, "internal_error") if status_int == 500 else (400, "malformed_request")
    counts.ERRORS.labels(code).inc()
    detail = DETAILS.get(status_int) or (f"{reason}: {mesg}" if mesg else reason)
    body = json.dumps({"detail": detail, "code": code})
    head = (
        f"HTTP/1.1 {status} {'Bad Request' if status == 400 else reason}\r\n"
        f"Connection: close\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n{SECURITY_HEADERS}"
        f"{HEADER}: {exchange.request_id}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    gunicorn.util.write_nonblock(sock, (head + body).encode("latin1"))


def escape_target(line: bytes) -> bytes:
    """A request line with its target percent-encoded where the client did not; other lines are left as they are."""
    method, _, rest = line.partition(b" ")
    target, _, version = rest.rpartition(b" ")
    if not target or not version.startswith(b"HTTP/"):
        return line
    return b"%s %s %s" % (method, UNESCAPED.sub(lambda found: b"%%%02X" % ord(found[0]), target), version)


def _escaping(parse: Callable[[Request, bytes], None]) -> Callable[[Request, bytes], None]:
    def parse_request_line(self: Request, line_bytes: bytes) -> None:
        if not line_bytes.isascii() or line_bytes.count(b" ") != 2:
            line_bytes = escape_target(line_bytes)
        parse(self, line_bytes)

    return parse_request_line


def _recording_refused(parse: Callable[..., Any]) -> Callable[..., Any]:
    def parse_headers(self: Request, data: bytes, from_trailer: bool = False) -> Any:
        try:
            return parse(self, data, from_trailer)
        except Exception:
            if from_trailer:
                # The request is known already.
                raise
            named = REQUEST_ID.search(data)
            known = {"REQUEST_METHOD": self.method or "", "PATH_INFO": self.path or ""}
            current.set(Exchange(known | ({"HTTP_X_REQUEST_ID": named[1].decode()} if named else {})))
            raise

    return parse_headers


class _Gathered(list[bytes]):
    """What a response would have sent, in the place of its socket."""

    sendall = list.append


def _sending_together(write: Callable[[Response, bytes], None]) -> Callable[[Response, bytes], None]:
    def write_together(self: Response, piece: bytes) -> None:
        if self.headers_sent or len(piece) > SENT_TOGETHER_BYTES:
            write(self, piece)
            return
        connection = self.sock
        gathered = _Gathered()
        self.sock = gathered  # type: ignore[assignment]  # a response calls sendall alone
        try:
            write(self, piece)
        finally:
            self.sock = connection
            connection.sendall(b"".join(gathered))

    return write_together
