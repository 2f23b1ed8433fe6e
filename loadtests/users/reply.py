"""An answer, and whether it is what it has to be."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from loadtests.content.expected import IN_DETAIL
from loadtests.recording import outcome

if TYPE_CHECKING:
    from locust.contrib.fasthttp import FastResponse

NO_STATUS = -1
# Characters of what is said about failures that are counted together.
KIND_LENGTH = 80

# Returns what is wrong with an answer, or None; may raise whatever a value of another form than expected raises.
Check = Callable[[Any], str | None]


class Reply:
    """An answer: its status, body and headers; `json` is parsed when it is asked for. One that broke off has neither status
    nor body."""

    def __init__(self, response: "FastResponse", error: Exception | None = None) -> None:
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


def kind_of(detail: str) -> str:
    """What failures of one kind have in common, from what is said about one of them."""
    common, found, _ = detail.partition(IN_DETAIL)
    return common if found or len(detail) <= KIND_LENGTH else f"{detail[: KIND_LENGTH - 1]}…"


def verdict(
    reply: Reply, status: int | Collection[int], check: Check | None, error: Exception | None
) -> tuple[str, str]:
    """The outcome, and where it is none of success what there is to say about it. `error` is what broke an answer off."""
    accepted = [status] if isinstance(status, int) else status
    found = outcome.of_status(reply.status, reply.status if reply.status in accepted else NO_STATUS)
    if found != outcome.OK:
        return found, outcome.of_response(reply.status, repr(error).encode() if error else reply.body)
    try:
        fault = check(reply) if check else None
    except Exception as unexpected:
        fault = f"not of the expected form: {unexpected!r}: {reply.body[:100]!r}"
    return (outcome.WRONG, fault[: outcome.DETAIL_LENGTH]) if fault else (outcome.OK, "")
