"""Error responses that the worker sends instead of the application."""

import json
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException

from cdb.worker.request_head import LINE_BYTES
from cdb_rest.http import security
from cdb_rest.wsgi.instrumentation import HEADER


class ErrorResponse(NamedTuple):
    """An error response of the worker: a status line, and the `code` and `detail` of its JSON body."""

    status: str
    code: str
    detail: str

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        """Respond, as a WSGI application."""
        start_response(self.status, self._headers())
        return [self._body()] if environ["REQUEST_METHOD"] != "HEAD" else []

    def to_bytes(self, request_id: str, method: str = "") -> bytes:
        """The complete HTTP response to a request of a method ("" if it is unknown), with `Connection: close`."""
        fields = [("Connection", "close"), *self._headers(), (HEADER, request_id)]
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {value}" for name, value in fields)]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (self._body() if method != "HEAD" else b"")

    def _body(self) -> bytes:
        return json.dumps({"detail": self.detail, "code": self.code}).encode()

    def _headers(self) -> list[tuple[str, str]]:
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(self._body()))),
            ("Cache-Control", "no-store"),
            *security.HEADERS.items(),
        ]
        return [*headers, ("Retry-After", "5")] if self.status.startswith("504") else headers


OVERLOADED = ErrorResponse(
    "504 Gateway Timeout", "overloaded", "The service has more requests than it can answer; try again later."
)
NO_SPACE = ErrorResponse(
    "504 Gateway Timeout",
    "overloaded",
    "There is no space for a request of this size in the service's temporary files; try again later, or with smaller requests.",
)
INCOMPLETE = ErrorResponse("400 Bad Request", "incomplete_body", "The body ended before its announced length.")
INTERNAL_ERROR = ErrorResponse("500 Internal Server Error", "internal_error", "Internal Server Error")

# Replace gunicorn's messages, which refer to its own code.
DETAILS: dict[type[Exception], str] = {
    LimitRequestLine: f"The request line is too long; at most {LINE_BYTES} bytes are accepted, with its target percent-encoded.",
    LimitRequestHeaders: f"The header fields are too many or too long; at most 100 of {LINE_BYTES} bytes each are accepted.",
}


def malformed_request(error: ParseException) -> ErrorResponse:
    """The response to a request that gunicorn can't parse: always with status 400."""
    return ErrorResponse("400 Bad Request", "malformed_request", DETAILS.get(type(error), str(error)))
