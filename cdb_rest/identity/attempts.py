"""A limit on invalid tokens: a client that sends many gets 429 for a while, without further verification.

Each process counts for itself, so the limit of a service is this one times the number of its processes.
"""

import threading
from time import monotonic

from cdb_rest.domain.errors import TooManyAttemptsError

LIMIT = 30
PERIOD_SECONDS = 60
MAX_CLIENTS = 10_000

_lock = threading.Lock()
# The number of invalid tokens of each client since the time at which the period began.
_failures: dict[str, int] = {}
_since = [0.0]


def check(client: str) -> None:
    """Raise `TooManyAttemptsError` if this client has sent too many invalid tokens in this period."""
    with _lock:
        if monotonic() - _since[0] > PERIOD_SECONDS:
            _since[0] = monotonic()
            _failures.clear()
        count = _failures.get(client, 0)
    if count >= LIMIT:
        raise TooManyAttemptsError(
            f"Too many invalid tokens came from {client}; try again in {PERIOD_SECONDS} seconds."
        )


def failed(client: str) -> None:
    """Count an invalid token of this client."""
    with _lock:
        if client in _failures or len(_failures) < MAX_CLIENTS:
            _failures[client] = _failures.get(client, 0) + 1


def forget() -> None:
    """Forget all invalid tokens."""
    with _lock:
        _failures.clear()
