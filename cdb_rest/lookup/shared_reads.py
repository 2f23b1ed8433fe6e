"""What one request reads and others use, so that reads cost less while requests wait.

Requests that read the same thing take turns in each process. A request that waited for its turn uses what was read after it had
begun: this includes every change that was acknowledged before the request was sent. So its response is not older than with a
query of its own. Without a queue, each request asks for itself.

Times are those of the monotonic clock. Only requests that do nothing but read may use what another request has read: a request
that has written must see its own change.
"""

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Generic, NamedTuple, Protocol, TypeVar

from cdb_rest import named_sql
from cdb_rest.compiled.tag import CompiledTag
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.history.contents import find_past
from cdb_rest.lookup.model import State, past_state
from cdb_rest.observe import metrics
from cdb_rest.observe.request_context import current_context
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import GlobalTagNotFoundError

# More would take memory for what is of use for some seconds only.
MOST_KEYS = 1000
# Keys with the same lock wait for each other.
LOCKS = 64
# A request asks for itself if its turn does not come within this time, because the database does not respond.
PATIENCE_SECONDS = 0.5


class Found(Protocol):
    """What a query has found. `begun` is when it was sent."""

    @property
    def begun(self) -> float: ...


Kind = TypeVar("Kind", bound=Found)


class SharedReads(Generic[Kind]):
    """The last that was read for each key. All threads of a process may use it."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Kind] = {}
        self._locks = [threading.Lock() for _ in range(LOCKS)]

    @contextmanager
    def turn(self, key: Hashable) -> Iterator[Kind | None]:
        """Wait until no other request of this process reads for the key.

        Yields what was read after the request of this thread had begun. If it is None, the caller must read, and may `remember`
        what it found, inside the block.
        """
        lock = self._locks[hash(key) % LOCKS]
        is_taken = lock.acquire(timeout=PATIENCE_SECONDS)
        try:
            found, context = self._found.get(key), current_context.get()
            yield found if found is not None and context is not None and found.begun >= context.began else None
        finally:
            if is_taken:
                lock.release()

    def last(self, key: Hashable) -> Kind | None:
        """The last that was read for the key, which may be out of date."""
        return self._found.get(key)

    def remember(self, key: Hashable, found: Kind) -> None:
        """Let other requests use it. The query must have had a snapshot of its own, and must have asked the primary."""
        known = self._found.get(key)
        if known is None or known.begun < found.begun:
            if len(self._found) >= MOST_KEYS:
                self._found.clear()
            self._found[key] = found


STATE = named_sql.load("global_tag_state")


class SharedState(NamedTuple):
    """A state that was read from the primary by a query that was sent at `begun`.

    `unchanged` has all rows in this state, if the query was asked about compiled lists.
    """

    begun: float
    state: State
    unchanged: CompiledTag | None = None


# By the names of the tags.
shared_states = SharedReads[SharedState]()


def find_state(tag: str) -> State | None:
    """The state of the tag of that name, on the current connection; None if there is no such tag. Raises `django.db.Error`."""
    rows = fetch_all(STATE, {"tag": tag})
    return State(*rows[0]) if rows else None


def read_state(tag: str, as_of: AsOf | None) -> State:
    """The state of a tag in the present or in the past. Raises `GlobalTagNotFoundError`, and the errors of `find_past`."""
    state = find_state(tag) if as_of is None else past_state(find_past(tag, as_of).version, as_of)
    if state is None:
        raise GlobalTagNotFoundError(tag)
    return state


def read_shared_state(tag: str) -> State:
    """The state of a tag in the present, which may be that which another request has read. Otherwise as `read_state`.

    Must not be called in a snapshot, nor by a request that writes.
    """
    with shared_states.turn(tag) as shared:
        if shared:
            metrics.SHARED_STATES.inc()
            return shared.state
        begun = monotonic()
        state = read_state(tag, None)
        shared_states.remember(tag, SharedState(begun, state))
        return state
