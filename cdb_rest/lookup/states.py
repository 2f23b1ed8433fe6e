"""The states of global tags, without their rows.

`find_state` chooses the server: the state of a replica is used only while the primary is down, and only if the tag is frozen. The
functions that share may use a state that another request has read.
"""

from collections.abc import Callable
from time import monotonic

from django.db import Error

from cdb_rest import named_sql
from cdb_rest.connections.deadlines import database_timeout
from cdb_rest.connections.reads import choose_replica, fetch_all
from cdb_rest.connections.replicas.replica import TIMEOUT_SECONDS, Replica
from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.domain.status import Status
from cdb_rest.history.revisions import find_past
from cdb_rest.lookup.model import ALL_TAGS, State, past_state
from cdb_rest.lookup.shared_states import SharedState, shared_states
from cdb_rest.metrics import counts
from cdb_rest.models.global_tag import VERSION_OF_ALL

STATE = named_sql.load("global_tag_state")
# Stands for the name of a tag where a state is that of all tags together. No tag has an empty name.
ALL_NAMES = ""
VERSION_OF_NONE = "0-0"


def find_state(tag: str) -> State | None:
    """The state of the tag of that name; None if there is no such tag.

    While the primary is down, a replica gives the state of a frozen tag. Otherwise raises `django.db.Error`.
    """
    try:
        return find_state_here(tag)
    except Error:
        replica = choose_replica()
        found = _state_on(replica, tag) if replica else None
        if found is None or found.status != Status.FROZEN:
            raise
        return found


def find_state_here(tag: str) -> State | None:
    """The state of the tag of that name, on the current connection; None if there is no such tag.

    Raises `django.db.Error`.
    """
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
    return _share(tag, lambda: read_state(tag, None))


def read_shared_state_of_all() -> State:
    """The state of all tags together, as `read_shared_state`."""
    return _share(ALL_NAMES, find_state_of_all)


def _share(name: str, read: Callable[[], State]) -> State:
    shared = shared_states.find(name)
    if shared:
        counts.SHARED_STATES.inc(1)
        return shared.state
    begun = monotonic()
    state = read()
    # While the primary is down, the state of a frozen tag is that of a replica.
    if state.status != Status.FROZEN:
        shared_states.remember(name, SharedState(begun, state))
    return state


def find_state_of_all() -> State:
    """The state of all tags together, on the current connection. Raises `django.db.Error`."""
    [(version,)] = fetch_all(VERSION_OF_ALL, {})
    return state_of_all(version)


def state_of_all(version: str) -> State:
    """The state of all tags with that version.

    It has no time of modification, because the deletion of a tag would not increase it.
    """
    return State(version, ALL_TAGS, None)


def _state_on(replica: Replica, tag: str) -> State | None:
    try:
        with replica.reading(), database_timeout(TIMEOUT_SECONDS):
            return find_state_here(tag)
    except Error as error:
        replica.failed(error)
        return None
