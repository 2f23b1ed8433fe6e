"""What gunicorn itself does with a request before the application sees it, brought in line with our contract.

gunicorn offers no setting for either, so `install` replaces one function and wraps one method of it.
"""

import json
import re
from collections.abc import Callable
from socket import socket

import gunicorn.util
from gunicorn.http.message import Request

# What may not stand in a request's target as it is, but does in requests of clients that escape nothing.
UNESCAPED = re.compile(rb"[\x20\x80-\xff]")


def install() -> None:
    """Answer refused requests in JSON, and understand paths that arrive unescaped."""
    gunicorn.util.write_error = write_json_error
    Request.parse_request_line = _escaping(Request.parse_request_line)


def write_json_error(connection: socket, status_int: int, reason: str, mesg: str) -> None:
    """Send the answer to a request that gunicorn refuses: 400 for whatever the client did wrong."""
    status, code = (500, "internal_error") if status_int == 500 else (400, "malformed_request")
    body = json.dumps({"detail": f"{reason}: {mesg}" if mesg else reason, "code": code})
    head = (
        f"HTTP/1.1 {status} {'Bad Request' if status == 400 else reason}\r\n"
        "Connection: close\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    gunicorn.util.write_nonblock(connection, (head + body).encode("latin1"))


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
