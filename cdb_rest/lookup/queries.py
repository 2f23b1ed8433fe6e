"""The SQL queries of the lookup, and the choice of the server.

The result of a replica is used only if the tag is frozen, so that it cannot change, or if the primary confirms that it
is current. `look_up` and `find_state` choose the server; the other functions use the current connection.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from django.db import Error

from cdb_rest import named_sql
from cdb_rest.connections.deadlines import database_timeout
from cdb_rest.connections.reads import choose_replica, fetch_all
from cdb_rest.connections.replicas.replica import TIMEOUT_SECONDS, Replica
from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.errors import GlobalTagNotFoundError, RevisionNotFoundError
from cdb_rest.domain.moment import AFTER_ALL, Interval, Mode, Moment
from cdb_rest.domain.status import Status
from cdb_rest.history.revisions import check_readable, missing_revision
from cdb_rest.lookup.model import (
    ALL_TAGS,
    NO_VALIDATORS,
    REVISION,
    TIME,
    LookupQuery,
    LookupResult,
    State,
    Validators,
    past_state,
)
from cdb_rest.metrics import counts
from cdb_rest.models.global_tag import VERSION_OF_ALL

CALL = named_sql.load("call_lookup")
CALL_AT = named_sql.load("call_lookup_at")
STATE = named_sql.load("global_tag_state")
BEGINNING = Moment(0, 0)
VERSION_OF_NONE = "0-0"


def look_up(query: LookupQuery, validators: Validators = NO_VALIDATORS, *, with_window: bool = False) -> LookupResult:
    """The result of a lookup, from a replica or the primary. If the validators match, the rows are not read.

    `with_window` requests the window of the result. While the primary is down, only lookups in frozen tags succeed, on
    a replica. Raises `GlobalTagNotFoundError`, or `django.db.Error`.
    """
    replica = choose_replica()
    found = _look_up_on(replica, query, validators, with_window=with_window) if replica else None
    return found or look_up_here(query, validators, with_window=with_window)


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
    [(version, status, modified, text, since, until)] = fetch_all(CALL, parameters, _count_started)
    counts.LOOKUPS_FINISHED.inc(1)
    if version is None:
        raise GlobalTagNotFoundError(query.tag)
    window = _window(since, until) if with_window and text is not None else None
    return LookupResult(State(version, status, modified), text, window)


def _look_up_past(query: LookupQuery, as_of: AsOf, validators: Validators, *, with_window: bool) -> LookupResult:
    parameters = {"tag": query.tag, "revision": as_of.revision, "time": as_of.time} | parameters_of(query)
    parameters |= {"versions": list(validators.versions), "with_window": with_window}
    [(revision, version, has_history, is_deleted, text, since, until)] = fetch_all(CALL_AT, parameters, _count_started)
    counts.LOOKUPS_FINISHED.inc(1)
    if revision is None:
        raise missing_revision(query.tag, as_of)
    check_readable(query.tag, revision, has_history=has_history, is_deleted=is_deleted)
    window = _window(since, until) if with_window and text is not None else None
    return LookupResult(past_state(version, as_of), text, window)


def _window(since: Decimal | None, until: Decimal | None) -> Interval:
    return Interval(
        BEGINNING if since is None else Moment.from_combined(since),
        AFTER_ALL if until is None else Moment.from_combined(until),
    )


def parameters_of(query: LookupQuery) -> dict[str, Any]:
    """The parameters of the SQL statements for a query, except for its tag."""
    return {
        "major": query.moment.major,
        "minor": query.moment.minor,
        "only_valid": query.only_valid,
        "inclusive": query.mode is Mode.DISCRETE,
        "as_objects": query.as_objects,
    }


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


def find_state_of_all() -> State:
    """The state of all tags together, on the current connection. Raises `django.db.Error`."""
    [(version,)] = fetch_all(VERSION_OF_ALL, {})
    return state_of_all(version)


def state_of_all(version: str) -> State:
    """The state of all tags with that version.

    It has no time of modification, because the deletion of a tag would not increase it.
    """
    return State(version, ALL_TAGS, None)


def _count_started() -> None:
    counts.LOOKUPS_STARTED.inc(1)


def _look_up_on(
    replica: Replica, query: LookupQuery, validators: Validators, *, with_window: bool
) -> LookupResult | None:
    """The result from a replica, or None if the replica fails or its result is not current.

    Raises `django.db.Error` if the tag is not frozen and the primary, which is asked for its state, fails.
    """
    try:
        with replica.reading(), database_timeout(TIMEOUT_SECONDS):
            found = look_up_here(query, validators, with_window=with_window)
    except (GlobalTagNotFoundError, RevisionNotFoundError):
        # The tag or the revision may be so new that the replica does not have it yet.
        replica.count("behind")
        return None
    except Error as error:
        replica.failed(error)
        return None
    if found.state.status == TIME:
        # The replica may lack the newest change before that time.
        return None
    if found.state.status not in (Status.FROZEN, REVISION):
        now = find_state_here(query.tag)
        if now is None or (now.version, now.status) != (found.state.version, found.state.status):
            replica.count("behind")
            return None
        # `modified` is None until its time is reached, by the clock of the server. Only the primary's clock counts.
        found = replace(found, state=now)
    replica.count("served")
    return found


def _state_on(replica: Replica, tag: str) -> State | None:
    try:
        with replica.reading(), database_timeout(TIMEOUT_SECONDS):
            return find_state_here(tag)
    except Error as error:
        replica.failed(error)
        return None
