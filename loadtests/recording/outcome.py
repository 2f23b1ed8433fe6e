"""What can become of a request, in the words of reports."""

OK = "success"
# Status and form were right, and the content was not.
WRONG = "wrong answer"
NO_RESPONSE = "no response"
NOT_FOUND = "404"
CLIENT_ERROR = "4xx"
# The service says that it is overloaded; clients come again.
OVERLOADED = "504"
SERVER_ERROR = "5xx"
# The generator had too many requests in progress to start this one.
NOT_SENT = "not sent"
# The generator itself failed, by an exception that nobody expected.
RIG_ERROR = "rig error"

# Characters of what is said about a failure.
DETAIL_LENGTH = 600

OUTCOMES = (OK, WRONG, NO_RESPONSE, NOT_FOUND, CLIENT_ERROR, OVERLOADED, SERVER_ERROR, NOT_SENT, RIG_ERROR)


def of_response(status: int, body: bytes) -> str:
    """What is said about a response that has another status than it has to."""
    return f"status {status}: {body.decode(errors='replace') or 'no body'}"[:DETAIL_LENGTH]


def of_status(status: int, expected: int) -> str:
    """The outcome by the HTTP status alone, 0 standing for none; what is neither expected nor an error is a wrong answer."""
    if status == expected:
        return OK
    if status == 0:
        return NO_RESPONSE
    if status == 404:
        return NOT_FOUND
    if status == 504:
        return OVERLOADED
    if 400 <= status < 500:
        return CLIENT_ERROR
    return SERVER_ERROR if status >= 500 else WRONG
