"""The queries of the lookup: one call of a function in the database, on a replica if there is one that may answer it, else on the
primary; never an old answer.

Functions whose names end in `_here` ask on the current connection, wherever that leads; the others choose the server.
"""

from dataclasses import replace
from typing import Any

from django.db import Error

from cdb_rest import named_sql
from cdb_rest.connections.deadlines import hurry
from cdb_rest.connections.reads import ask, choose
from cdb_rest.connections.replicas.replica import ANSWER_SECONDS, Replica
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.domain.moment import AFTER_ALL, Interval, Mode, Moment
from cdb_rest.domain.status import Status
from cdb_rest.lookup.question import ALL_TAGS, NOTHING, Answer, Known, Question, State
from cdb_rest.metrics import counts
from cdb_rest.models.global_tag import VERSION_OF_ALL

CALL = named_sql.load("call_answer")
STATE = named_sql.load("global_tag_state")
BEGINNING = Moment(0, 0)
VERSION_OF_NONE = "0-0"


def look_up(question: Question, known: Known = NOTHING, *, with_window: bool = False) -> Answer:
    """The answer, without looking for it where what the client has still holds. Raises `GlobalTagNotFoundError`."""
    replica = choose()
    found = _ask_replica(replica, question, known, with_window=with_window) if replica else None
    return found or look_up_here(question, known, with_window=with_window)


def look_up_here(question: Question, known: Known = NOTHING, *, with_window: bool = False) -> Answer:
    """The answer, in one round trip; without looking for it where what the client has still holds.

    Raises `GlobalTagNotFoundError`.
    """
    parameters = {"tag": question.tag} | parameters_of(question)
    parameters |= {"known": list(known.versions), "known_modified": known.modified, "with_window": with_window}
    [(version, status, modified, text, since, until)] = ask(CALL, parameters, _count_started)
    counts.LOOKUPS_FINISHED.inc(1)
    if version is None:
        raise GlobalTagNotFoundError(question.tag)
    window = None
    if with_window and text is not None:
        window = Interval(
            BEGINNING if since is None else Moment.from_combined(since),
            AFTER_ALL if until is None else Moment.from_combined(until),
        )
    return Answer(State(version, status, modified), text, window)


def parameters_of(question: Question) -> dict[str, Any]:
    """What a question says besides its tag, as the statements name it."""
    return {
        "major": question.moment.major,
        "minor": question.moment.minor,
        "only_valid": question.only_valid,
        "inclusive": question.mode is Mode.DISCRETE,
        "as_objects": question.as_objects,
    }


def find_state(tag: str) -> State | None:
    """The state of the tag of that name, or None. While the primary is away, that of a frozen tag can still be had."""
    try:
        return find_state_here(tag)
    except Error:
        replica = choose()
        found = _state_on(replica, tag) if replica else None
        if found is None or found.status != Status.FROZEN:
            raise
        return found


def find_state_here(tag: str) -> State | None:
    """The state of the tag of that name, or None."""
    rows = ask(STATE, {"tag": tag})
    return State(*rows[0]) if rows else None


def find_state_of_all() -> State:
    """The state of all tags together."""
    [(version,)] = ask(VERSION_OF_ALL, {})
    return state_of_all(version)


def state_of_all(version: str) -> State:
    """The state of all tags with that version. It has no time of modification: a tag that goes leaves no later one behind."""
    return State(version, ALL_TAGS, None)


def _count_started() -> None:
    counts.LOOKUPS_STARTED.inc(1)


def _ask_replica(replica: Replica, question: Question, known: Known, *, with_window: bool) -> Answer | None:
    """The replica's answer, or None if it can't be had, or has become old."""
    try:
        with replica.reading(), hurry(ANSWER_SECONDS):
            found = look_up_here(question, known, with_window=with_window)
    except GlobalTagNotFoundError:
        # It may have been made a moment ago.
        replica.count("behind")
        return None
    except Error as error:
        replica.failed(error)
        return None
    if found.state.status != Status.FROZEN:
        now = find_state_here(question.tag)
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
            return find_state_here(tag)
    except Error as error:
        replica.failed(error)
        return None
