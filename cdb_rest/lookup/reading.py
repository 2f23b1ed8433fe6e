"""The lookup from a replica, if there is one that may answer it, else from the primary; never an old answer."""

from dataclasses import replace

from django.db import Error

from cdb_rest.connections.deadlines import hurry
from cdb_rest.connections.replicas.choice import choose
from cdb_rest.connections.replicas.replica import ANSWER_SECONDS, Replica
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.domain.status import Status
from cdb_rest.lookup import lateral, state
from cdb_rest.lookup.lateral import Answer
from cdb_rest.lookup.question import Question
from cdb_rest.lookup.state import NOTHING, Known, State


def look_up(question: Question, known: Known = NOTHING, *, with_window: bool = False) -> Answer:
    """The answer, without looking for it where what the client has still holds. Raises `GlobalTagNotFoundError`."""
    replica = choose()
    found = _ask(replica, question, known, with_window=with_window) if replica else None
    return found or lateral.look_up(question, known, with_window=with_window)


def find_state(tag: str) -> State | None:
    """The state of the tag of that name, or None. While the primary is away, that of a frozen tag can still be had."""
    try:
        return state.find_state(tag)
    except Error:
        replica = choose()
        found = _state_on(replica, tag) if replica else None
        if found is None or found.status != Status.FROZEN:
            raise
        return found


def _ask(replica: Replica, question: Question, known: Known, *, with_window: bool) -> Answer | None:
    """The replica's answer, or None if it can't be had, or has become old."""
    try:
        with replica.reading(), hurry(ANSWER_SECONDS):
            found = lateral.look_up(question, known, with_window=with_window)
    except GlobalTagNotFoundError:
        # It may have been made a moment ago.
        replica.count("behind")
        return None
    except Error as error:
        replica.failed(error)
        return None
    if found.state.status != Status.FROZEN:
        now = state.find_state(question.tag)
        if now is None or (now.version, now.status) != (found.state.version, found.state.status):
            replica.count("behind")
            return None
        # The primary's clock says when a second is over.
        found = replace(found, state=now)
    replica.count("served")
    return found


def _state_on(replica: Replica, tag: str) -> State | None:
    try:
        with replica.reading(), hurry(ANSWER_SECONDS):
            return state.find_state(tag)
    except Error as error:
        replica.failed(error)
        return None
