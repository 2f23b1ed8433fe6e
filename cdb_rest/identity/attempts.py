"""A limit on invalid tokens and wrong passwords: a client that sends many is refused for a while, without verification.

A client may fail `LIMIT` times in a period of `PERIOD_SECONDS`. The periods are the same for all clients. Each process
counts for itself, so the limit of a service is this one times the number of its processes. Threads share the counts.
"""

import threading
from time import monotonic

from cdb_rest.domain.errors import TooManyAttemptsError

LIMIT = 30
PERIOD_SECONDS = 60
MAX_CLIENTS = 10_000

_lock = threading.Lock()
# The number of failures of each client since the time at which the period began.
_failures: dict[str, int] = {}
_since = [0.0]


def client_at(address: str) -> str:
    """The address of the client, for `check` and `failed`.

    `address` may be a list of addresses, as in `X-Forwarded-For`. Then the result is the last one, which our proxy has
    added: the client itself can send the others.
    """
    return address.rpartition(",")[2].strip()


def check(client: str) -> None:
    """Raise `TooManyAttemptsError` if this client has failed `LIMIT` times in this period.

    `client` is any text by which failures are counted. Begins a new period if the last one is over.
    """
    with _lock:
        if monotonic() - _since[0] > PERIOD_SECONDS:
            _since[0] = monotonic()
            _failures.clear()
        count = _failures.get(client, 0)
    if count >= LIMIT:
        raise TooManyAttemptsError(
            f"Too many invalid tokens or passwords: {client}; try again in {PERIOD_SECONDS} seconds."
        )


def failed(client: str) -> None:
    """Count a failure of this client. Failures of further clients than `MAX_CLIENTS` in a period are not counted."""
    with _lock:
        if client in _failures or len(_failures) < MAX_CLIENTS:
            _failures[client] = _failures.get(client, 0) + 1


def forget() -> None:
    """Forget all failures that this process has counted. Tests use it."""
    with _lock:
        _failures.clear()
