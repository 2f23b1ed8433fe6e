"""A limit on invalid tokens and wrong passwords: a client that sends many is refused for a while, without verification.

Each process counts for itself, so the limit of a service is this one times the number of its processes.
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
    """The client with an address. Of several, as in `X-Forwarded-For`, the last one: the others may come from the client."""
    return address.rpartition(",")[2].strip()


def check(client: str) -> None:
    """Raise `TooManyAttemptsError` if this client has failed too often in this period."""
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
    """Count a failure of this client."""
    with _lock:
        if client in _failures or len(_failures) < MAX_CLIENTS:
            _failures[client] = _failures.get(client, 0) + 1


def forget() -> None:
    """Forget all failures."""
    with _lock:
        _failures.clear()
