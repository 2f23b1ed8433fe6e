"""The possible outcomes of a request, as reports and recordings name them, and how a response is judged."""

from collections.abc import Callable, Collection

OK = "success"
# The status and form were correct, the content was not.
WRONG = "wrong response"
NO_RESPONSE = "no response"
NOT_FOUND = "404"
CLIENT_ERROR = "4xx"
# The service reports overload; clients retry later.
OVERLOADED = "504"
SERVER_ERROR = "5xx"
# The generator had too many requests in progress to start this one.
NOT_SENT = "not sent"
# An unexpected exception in the generator itself.
GENERATOR_ERROR = "generator error"

# The largest number of characters in the description of a failure.
DETAIL_LENGTH = 600

OUTCOMES = (OK, WRONG, NO_RESPONSE, NOT_FOUND, CLIENT_ERROR, OVERLOADED, SERVER_ERROR, NOT_SENT, GENERATOR_ERROR)
OF_STATUS = {0: NO_RESPONSE, 404: NOT_FOUND, 504: OVERLOADED}
OF_CLASS = {4: CLIENT_ERROR, 5: SERVER_ERROR}


def of_response(status: int, body: bytes) -> str:
    """The description of a response with an unexpected status."""
    return f"status {status}: {body.decode(errors='replace') or 'no body'}"[:DETAIL_LENGTH]


def judged(status: int, body: bytes, accepted: Collection[int], check: Callable[[], str | None]) -> tuple[str, str]:
    """The outcome of a response (status 0: none), and for a failure its description.

    A status that is neither accepted nor an error is a wrong response. `check` describes what is wrong with the content of a
    response with an accepted status, or returns None; any exception means that the content has an unexpected form.
    """
    if status not in accepted:
        return OF_STATUS.get(status, OF_CLASS.get(status // 100, WRONG)), of_response(status, body)
    try:
        fault = check()
    except Exception as unexpected:
        fault = f"not of the expected form: {unexpected!r}: {body[:100]!r}"
    return (WRONG, fault[:DETAIL_LENGTH]) if fault else (OK, "")
