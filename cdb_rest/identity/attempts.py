"""A limit on invalid tokens and wrong passwords: a client that sends many is refused for a while, without verification.

A client may fail `LIMIT` times in `PERIOD_SECONDS` from its first failure on. Each process counts for itself, so the limit of
a service is this one times the number of its processes.
"""

from cdb_rest.identity.cache import cache
from cdb_rest.rules.errors import TooManyAttemptsError

LIMIT = 30
PERIOD_SECONDS = 60

_failures = cache("failures", PERIOD_SECONDS)


def client_at(address: str) -> str:
    """The address of the client, for `check` and `failed`.

    `address` may be a list of addresses, as in `X-Forwarded-For`. Then the result is the last one, which our proxy has
    added: the client itself can send the others.
    """
    return address.rpartition(",")[2].strip()


def check(client: str) -> None:
    """Raise `TooManyAttemptsError` if this client, any text by which failures are counted, has failed `LIMIT` times."""
    if _failures.get(client, 0) >= LIMIT:
        raise TooManyAttemptsError(
            f"Too many invalid tokens or passwords: {client}; try again in {PERIOD_SECONDS} seconds."
        )


def failed(client: str) -> None:
    """Count a failure of this client."""
    if not _failures.add(client, 1):
        _failures.incr(client)


def forget() -> None:
    """Forget all failures that this process has counted. Tests use it."""
    _failures.clear()
