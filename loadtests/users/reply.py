"""A response, and the verdict whether it is correct."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from loadtests.content.expected import IN_DETAIL
from loadtests.recording import outcome

if TYPE_CHECKING:
    from locust.contrib.fasthttp import FastResponse

# Failures are counted together if their descriptions begin with this number of equal characters.
KIND_LENGTH = 80

# Returns a description of what is wrong with a response, or None. It may raise any exception for an unexpected form.
Check = Callable[[Any], str | None]


class Reply:
    """A response: status, body, headers; `json` is parsed on first use.

    An incomplete one has status 0 and an empty body.
    """

    def __init__(self, response: "FastResponse", error: Exception | None = None) -> None:
        self.status: int = 0 if error else response.status_code or 0
        self.body: bytes = b"" if error else response.content or b""
        self.headers: Mapping[str, str] = response.headers or {}
        self.rows = -1
        self._json: Any = None

    @property
    def json(self) -> Any:
        """The parsed body; `rows` becomes the length of a list. Raises `ValueError` if the body is not JSON."""
        if self._json is None:
            self._json = orjson.loads(self.body)
            if isinstance(self._json, list):
                self.rows = len(self._json)
        return self._json


def kind_of(detail: str) -> str:
    """The part of the description of a failure that all failures of its kind have in common."""
    common, found, _ = detail.partition(IN_DETAIL)
    return common if found or len(detail) <= KIND_LENGTH else f"{detail[: KIND_LENGTH - 1]}…"


def verdict(
    reply: Reply, status: int | Collection[int], check: Check | None, error: Exception | None
) -> tuple[str, str]:
    """The outcome of a request, and for a failure its description; `error` is the exception that ended the response."""
    accepted = [status] if isinstance(status, int) else status
    body = repr(error).encode() if error else reply.body
    return outcome.judged(reply.status, body, accepted, lambda: check(reply) if check else None)
