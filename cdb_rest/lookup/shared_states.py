"""States of global tags that one request has read and that others use, so that lookups cost less while requests wait.

A request waits for a thread while others are handled. If one of those reads the state of a tag after the waiting request has
arrived, this state includes every change that was acknowledged before the waiting request was sent. So the waiting request can
use it instead of asking the database again, and its response is not older than with a query of its own. Without a queue, each
request still asks for itself.

Times are those of the monotonic clock. Only requests that do nothing but read may use a state of another request: a request
that has written must see its own change.
"""

from typing import NamedTuple

from cdb_rest.compiled.tag import CompiledTag
from cdb_rest.lookup.model import State
from cdb_rest.observe.request_context import arrived

# More tags would take memory for states that are of use for some seconds only.
MOST_TAGS = 1000


class SharedState(NamedTuple):
    """A state that was read from the primary by a query that was sent at `begun`.

    `unchanged` is the compiled tag of which the query has said that it has all rows in this state, if it was asked about one.
    """

    begun: float
    state: State
    unchanged: CompiledTag | None = None


class SharedStates:
    """The last state that was read of each tag, by its name. All threads of a process may use it."""

    def __init__(self) -> None:
        self._states: dict[str, SharedState] = {}

    def find(self, tag: str) -> SharedState | None:
        """The state of a tag that was read after the request of this thread had arrived; None if there is none."""
        known, since = self._states.get(tag), arrived.get()
        return known if known is not None and since is not None and known.begun >= since else None

    def remember(self, tag: str, shared: SharedState) -> None:
        """Let other requests use a state. The query must have had a snapshot of its own, and must have asked the primary."""
        known = self._states.get(tag)
        # Between this comparison and the assignment, another thread may store a later state, which is then lost. That is
        # harmless: a state is used only by requests that arrived before its own query.
        if known is None or known.begun < shared.begun:
            if len(self._states) >= MOST_TAGS:
                self._states.clear()
            self._states[tag] = shared


shared_states = SharedStates()
