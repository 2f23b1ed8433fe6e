"""An answer, and whether it is what it has to be."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import orjson
from locust.contrib.fasthttp import FastResponse

from loadtests.recording import outcome

DETAIL_LENGTH = 300
NO_STATUS = -1

# Returns what is wrong with an answer, or None; may raise whatever a value of another form than expected raises.
Check = Callable[[Any], str | None]


class Reply:
    """An answer: its status, body and headers; `json` is parsed when it is asked for. One that broke off has neither status
    nor body."""

    def __init__(self, response: FastResponse, error: Exception | None = None) -> None:
        self.status: int = 0 if error else response.status_code or 0
        self.body: bytes = b"" if error else response.content or b""
        self.headers: Mapping[str, str] = response.headers or {}
        self.rows = -1
        self._json: Any = None

    @property
    def json(self) -> Any:
        """The parsed body; a list's length is noted as the number of rows. Raises `ValueError` if it is none."""
        if self._json is None:
            self._json = orjson.loads(self.body)
            if isinstance(self._json, list):
                self.rows = len(self._json)
        return self._json


def verdict(
    reply: Reply, status: int | Collection[int], check: Check | None, error: Exception | None
) -> tuple[str, str]:
    """The outcome, and where it is none of success what there is to say about it. `error` is what broke an answer off."""
    accepted = [status] if isinstance(status, int) else status
    found = outcome.of_status(reply.status, reply.status if reply.status in accepted else NO_STATUS)
    if found != outcome.OK:
        told = repr(error) if error else reply.body.decode(errors="replace")
        return found, f"status {reply.status}: {told}"[:DETAIL_LENGTH]
    try:
        fault = check(reply) if check else None
    except Exception as unexpected:
        fault = f"not of the expected form: {unexpected!r}: {reply.body[:100]!r}"
    return (outcome.WRONG, fault[:DETAIL_LENGTH]) if fault else (outcome.OK, "")
