"""The SQL queries of the lookup, and the choice of the server.

The result of a replica is used only if no server can have another one (a frozen tag or a past revision, which no failover can
lose), or if the primary confirms that it is current. `look_up` chooses the server; the other functions use the current
connection.
"""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Protocol

from django.db import Error

from cdb_rest import named_sql
from cdb_rest.compiled.registry import registry
from cdb_rest.compiled.tag import CompiledTag
from cdb_rest.connections import durability
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.connections.replicas import REPLICAS, Replica, choose_replica
from cdb_rest.history.contents import check_readable, missing_revision
from cdb_rest.lookup.compiled import is_current, look_up_compiled, look_up_unchanged, unchanged_state
from cdb_rest.lookup.model import (
    NO_VALIDATORS,
    REVISION,
    TIME,
    LookupQuery,
    LookupResult,
    State,
    Validators,
    count_started,
    moment_from,
    parameters_of,
    past_state,
)
from cdb_rest.lookup.shared_reads import SharedState, read_shared_state, read_state, shared_states
from cdb_rest.observe import metrics
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import GlobalTagNotFoundError, RevisionNotFoundError, RevisionPrunedError
from cdb_rest.rules.moment import window_between
from cdb_rest.rules.status import Status

CALL = named_sql.load("call_lookup")
CALL_AT = named_sql.load("call_lookup_at")


class LookUp(Protocol):
    """A function that looks up one tag. It may ask the database, and raises the errors of `look_up_here`."""

    def __call__(self, query: LookupQuery, *, with_window: bool) -> LookupResult: ...


def look_up(query: LookupQuery, validators: Validators = NO_VALIDATORS, *, with_window: bool = False) -> LookupResult:
    """The result of a lookup: from compiled lists, a replica or the primary. If the validators match, the rows are not read.

    `with_window` requests the window of the result. While the primary is down, only lookups in frozen tags and in past revisions
    succeed, from compiled lists or on a replica. Must not be called in a snapshot. Raises the errors of `look_up_here`.
    """
    compiled = _find_compiled(query)
    if compiled is not None and not compiled.missing and not compiled.state.is_fixed:
        return _look_up_in_turn(compiled, query, validators, with_window=with_window)
    if query.as_of is None and compiled is None and validators != NO_VALIDATORS:
        # On a frozen tag, a replica may answer below while the primary is down.
        with suppress(Error):
            state = read_shared_state(query.tag)
            if validators.match(state):
                return LookupResult(state, None, None)
            validators = NO_VALIDATORS
    return _look_up_alone(compiled, query, validators, with_window=with_window)


def _look_up_in_turn(
    compiled: CompiledTag, query: LookupQuery, validators: Validators, *, with_window: bool
) -> LookupResult:
    """The result from compiled lists that are probably those of the present; requests share the question whether they are."""
    with shared_states.turn(query.tag) as shared:
        if shared is None or shared.unchanged is not compiled:
            begun = monotonic()
            found = _look_up_alone(compiled, query, validators, with_window=with_window)
            # A 304 does not say whether the state is one of this database.
            if found.body is not None and is_current(compiled, found.state):
                shared_states.remember(query.tag, SharedState(begun, found.state, compiled))
            return found
    metrics.SHARED_STATES.inc()
    metrics.COMPILED_SHARED.inc()
    return look_up_unchanged(compiled, query, shared.state, validators, with_window=with_window)


def _look_up_alone(
    compiled: CompiledTag | None, query: LookupQuery, validators: Validators, *, with_window: bool
) -> LookupResult:
    """The result without a state that another request has read."""
    found = look_up_compiled(compiled, query, validators, with_window=with_window) if compiled else None
    if found is None:
        replica = choose_replica() if REPLICAS else None
        found = _look_up_on(replica, query, validators, with_window=with_window) if replica else None
        found = found or look_up_here(query, validators, with_window=with_window)
        _note_whole(query, found)
    return found


def _note_whole(query: LookupQuery, found: LookupResult) -> None:
    """Count a lookup that PostgreSQL answered, for the compiler. The process learns which lists the tag has."""
    revision = None if query.as_of is None else query.as_of.revision
    if found.body is not None and (query.as_of is None or revision is not None):
        registry.note_whole(query.tag, revision, found.state.version)


def reader_of(query: LookupQuery) -> LookUp:
    """A function for many lookups in the tag of `query`, all in its present or past state.

    The caller must be in a snapshot while it uses the function. If all lists of the tag are compiled, the function reads
    only files. Raises the errors of `look_up_here`, and so does the function.
    """
    compiled = _find_compiled(query)
    state = unchanged_state(compiled, query) if compiled else None
    if compiled and state:
        return partial(look_up_unchanged, compiled, state=state)
    return partial(_look_up_in_snapshot, compiled)


def _look_up_in_snapshot(compiled: CompiledTag | None, query: LookupQuery, *, with_window: bool) -> LookupResult:
    found = look_up_compiled(compiled, query, NO_VALIDATORS, with_window=with_window) if compiled else None
    if found is None:
        found = look_up_here(query, with_window=with_window)
        _note_whole(query, found)
    return found


def _find_compiled(query: LookupQuery) -> CompiledTag | None:
    if query.as_of is None:
        return registry.find(query.tag)
    return None if query.as_of.revision is None else registry.find(query.tag, query.as_of.revision)


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def look_up_here(
    query: LookupQuery, validators: Validators = NO_VALIDATORS, *, with_window: bool = False
) -> LookupResult:
    """The result of a lookup on the current connection, in one round trip. Otherwise as `look_up`.

    Raises `GlobalTagNotFoundError`, or `django.db.Error`; for a past state also `RevisionNotFoundError` or
    `RevisionPrunedError`.
    """
    if query.as_of is not None:
        return _look_up_past(query, query.as_of, validators, with_window=with_window)
    parameters = {"tag": query.tag} | parameters_of(query)
    parameters |= {"versions": list(validators.versions), "modified": validators.modified, "with_window": with_window}
    [(version, status, modified, text, since, until)] = fetch_all(CALL, parameters, count_started)
    metrics.LOOKUPS_FINISHED.inc()
    if version is None:
        raise GlobalTagNotFoundError(query.tag)
    window = window_between(moment_from(since), moment_from(until)) if with_window and text is not None else None
    return LookupResult(State(version, status, modified), _encoded(text), window)


def _look_up_past(query: LookupQuery, as_of: AsOf, validators: Validators, *, with_window: bool) -> LookupResult:
    parameters = {"tag": query.tag, "revision": as_of.revision, "time": as_of.time} | parameters_of(query)
    parameters |= {"versions": list(validators.versions), "with_window": with_window}
    [(revision, version, has_history, is_deleted, text, since, until)] = fetch_all(CALL_AT, parameters, count_started)
    metrics.LOOKUPS_FINISHED.inc()
    if revision is None:
        raise missing_revision(query.tag, as_of)
    check_readable(query.tag, revision, has_history=has_history, is_deleted=is_deleted)
    window = window_between(moment_from(since), moment_from(until)) if with_window and text is not None else None
    return LookupResult(past_state(version, as_of), _encoded(text), window)


def _look_up_on(
    replica: Replica, query: LookupQuery, validators: Validators, *, with_window: bool
) -> LookupResult | None:
    """The result from a replica, or None if the replica fails or its result is not current.

    Raises `django.db.Error` if the primary is asked for the state and fails: if the tag is not frozen, or if a failover may
    lose the state, so that the replica may be the only one that still has it.
    """
    try:
        with replica.reading():
            found = look_up_here(query, validators, with_window=with_window)
    except (GlobalTagNotFoundError, RevisionNotFoundError):
        # The tag or the revision may be so new that the replica does not have it yet.
        return None
    except Error as error:
        replica.leave(error)
        return None
    if found.state.status == TIME:
        # The replica may lack the newest change before that time.
        return None
    if found.state.status not in (Status.FROZEN, REVISION) or not durability.is_known(found.state.version):
        try:
            now = read_state(query.tag, query.as_of)
        except (GlobalTagNotFoundError, RevisionNotFoundError, RevisionPrunedError):
            return None
        if (now.version, now.status) != (found.state.version, found.state.status):
            return None
        # `modified` is None until its time is reached, by the clock of the server. Only the primary's clock counts.
        found = replace(found, state=now)
    return found
