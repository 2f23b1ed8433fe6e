"""Responses that the worker gives instead of the application."""

import json
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

from cdb_rest.http import security


class Substitute(NamedTuple):
    """A response that the worker gives instead of the application: a status line, and what the JSON document says."""

    status: str
    code: str
    detail: str

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        """Respond, as a WSGI application."""
        body = json.dumps({"detail": self.detail, "code": self.code}).encode()
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            *security.HEADERS.items(),
        ]
        if self.status.startswith("504"):
            headers.append(("Retry-After", "5"))
        start_response(self.status, headers)
        return [body] if environ["REQUEST_METHOD"] != "HEAD" else []


OVERLOADED = Substitute(
    "504 Gateway Timeout", "overloaded", "The service has more requests than it can answer; try again later."
)
NO_SPACE = Substitute(
    "504 Gateway Timeout",
    "overloaded",
    "There is no space for a request of this size in the service's temporary files; try again later, or with smaller requests.",
)
INCOMPLETE = Substitute("400 Bad Request", "incomplete_body", "The body ended before its announced length.")
