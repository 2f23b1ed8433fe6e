"""The states of global tags, without their rows."""

from time import monotonic
from typing import NamedTuple

from cdb_rest import named_sql
from cdb_rest.compiled.tag import CompiledTag
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.history.revisions import find_past
from cdb_rest.lookup.model import State, past_state
from cdb_rest.lookup.shared_reads import SharedReads
from cdb_rest.observe import metrics
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import GlobalTagNotFoundError

STATE = named_sql.load("global_tag_state")


class SharedState(NamedTuple):
    """A state that was read from the primary by a query that was sent at `begun`.

    `unchanged` is the compiled tag of which the query has said that it has all rows in this state, if it was asked about one.
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
