"""The possible outcomes of a request, as reports and recordings name them."""

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


def of_status(status: int, expected: int) -> str:
    """The outcome by the HTTP status (0: no response).

    A status that is neither expected nor an error is a wrong response.
    """
    return OK if status == expected else OF_STATUS.get(status, OF_CLASS.get(status // 100, WRONG))
