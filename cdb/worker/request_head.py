"""The head of a request: the properties that the worker needs before gunicorn parses the request."""

import re

# gunicorn's limit on the request line, and on each field of the head.
LINE_BYTES = 8190
# More than gunicorn accepts: a request line and 100 fields of that size.
HEAD_BYTES = 102 * 8192

# Patterns for a head in lower case.
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n")
LENGTH_FIELD, CHUNKED_FIELD = b"\r\ncontent-length:", b"\r\ntransfer-encoding:"
VERSION_1_1 = re.compile(rb"[^\r\n]* http/1\.1\r\n")
# All reads except lookups, health checks, /metrics, and the reads of single rows and short lists that are named here.
# Short reads at other paths, such as some aliases of these, count as long.
LONG_READ = re.compile(
    rb"(get|head) (?!/health/|/metrics|/api/cdb_rest/("
    rb"payloadiovs(?!range)|payload-iovs/query|gtpayloadlists/|(piov|payload-iovs)/[0-9]+[ /?]|"
    rb"(gtstatus|pt|payload-types|globaltags)[ /?]))"
)
MONITORING = re.compile(rb"(get|head) /(health/|metrics[ /?])")
FORWARDED_FOR = re.compile(rb"\r\nx-forwarded-for:[ \t]*([^\r\n]*)\r\n")
# Patterns for a head as it arrived.
REQUEST_LINE = re.compile(rb"(?:\r\n)?([!-~]+) ([!-~]+) HTTP/")
REQUEST_ID = re.compile(rb"\r\nX-Request-ID:[ \t]*([!-~]+)[ \t]*(?=\r\n)", re.IGNORECASE)
# Bytes that HTTP does not allow in a request target, but that clients without percent-encoding send.
UNESCAPED = re.compile(rb"[\x20\x80-\xff]")


class RequestHead:
    """A request line and header fields, each with its line end; empty if the head has not arrived."""

    __slots__ = ("_lower", "_raw")

    def __init__(self, raw: bytes = b"") -> None:
        self._raw = raw
        self._lower = raw.lower()

    @property
    def identity(self) -> dict[str, str]:
        """The method, the path and the request id of the client, by their WSGI names, as far as they can be read."""
        line, request_id = REQUEST_LINE.match(self._raw), REQUEST_ID.search(self._raw)
        found = {}
        if line:
            found = {"REQUEST_METHOD": line[1].decode(), "PATH_INFO": line[2].partition(b"?")[0].decode()}
        return found | ({"HTTP_X_REQUEST_ID": request_id[1].decode()} if request_id else {})

    @property
    def address(self) -> str:
        """The value of X-Forwarded-For in lower case, in which a proxy names the client's address; empty without it."""
        found = FORWARDED_FOR.search(self._lower)
        return found[1].decode("latin-1") if found else ""

    @property
    def is_long_read(self) -> bool:
        """Whether the request is a read whose response may be large."""
        return bool(LONG_READ.match(self._lower))

    @property
    def is_monitoring(self) -> bool:
        """Whether the request is a health check, or for /metrics."""
        return bool(MONITORING.match(self._lower))

    @property
    def has_body(self) -> bool:
        """Whether the head announces a body, by Content-Length or Transfer-Encoding."""
        return LENGTH_FIELD in self._lower or self.is_chunked

    @property
    def is_chunked(self) -> bool:
        """Whether the head has a Transfer-Encoding field."""
        return CHUNKED_FIELD in self._lower

    @property
    def length(self) -> int:
        """The Content-Length in bytes; 0 if there is none or it is not a number."""
        found = LENGTH.search(self._lower)
        return int(found[1]) if found else 0

    @property
    def is_version_1_1(self) -> bool:
        """Whether the request uses HTTP/1.1."""
        return bool(VERSION_1_1.match(self._lower))


def escape_target(line: bytes) -> bytes:
    """The request line, with bytes that are not allowed in its target percent-encoded.

    A line without such bytes, without a target or HTTP version, or longer than `LINE_BYTES` is returned unchanged.
    """
    # gunicorn refuses a longer line anyway, so the main loop need not spend time on it.
    if len(line) > LINE_BYTES or (line.isascii() and line.count(b" ") == 2):
        return line
    method, _, rest = line.partition(b" ")
    target, _, version = rest.rpartition(b" ")
    if not target or not version.startswith(b"HTTP/"):
        return line
    return b"%s %s %s" % (method, UNESCAPED.sub(lambda found: b"%%%02X" % ord(found[0]), target), version)
