"""Lookups from compiled lists: files answer for the lists that they have, and the database for the others.

A lookup in the present asks the database in one round trip whether the tag is still in the state that this process knows, and for
the rows of the lists that are not compiled. Frozen tags and past revisions do not change: once the process knows their lists, and
that no failover can lose these states, the files answer alone.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import Error

from cdb_rest import named_sql
from cdb_rest.compiled.registry import registry
from cdb_rest.compiled.tag import CompiledTag, Edges, Query
from cdb_rest.connections import durability
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.lookup.model import (
    NO_VALIDATORS,
    LookupQuery,
    LookupResult,
    State,
    Validators,
    count_started,
    moment_from,
    parameters_of,
    past_state,
)
from cdb_rest.observe import metrics
from cdb_rest.rules.errors import GlobalTagNotFoundError
from cdb_rest.rules.moment import window_between

CALL = named_sql.load("call_lookup_compiled")


def look_up_compiled(
    compiled: CompiledTag, query: LookupQuery, validators: Validators, *, with_window: bool
) -> LookupResult | None:
    """The result of a lookup in a tag or revision of which there are compiled lists; None if a database has to answer: for a
    revision that is not known as durable, and for a frozen tag if the primary does not respond.

    `compiled` must be of the present state for a query of the present, and of the revision for a query of a revision. Raises
    `GlobalTagNotFoundError`, and `django.db.Error` if the database does not respond for a tag that is not frozen.
    """
    state = compiled.state
    if state.is_fixed and not compiled.missing and durability.is_known(state.version):
        metrics.COMPILED_ALONE.inc()
        return look_up_unchanged(compiled, query, _fixed_state(compiled, query), validators, with_window=with_window)
    if query.as_of is not None:
        return None
    parameters = parameters_of(query) | {
        "tag": query.tag,
        "versions": list(validators.versions),
        "modified": validators.modified,
        "with_window": with_window,
        "database": state.database,
        "tag_id": state.tag_id,
        "state_version": state.version,
        "missing": compiled.missing_ids,
    }
    try:
        [row] = fetch_all(CALL, parameters, count_started)
    except Error:
        if state.is_fixed:
            return None
        raise
    metrics.LOOKUPS_FINISHED.inc()
    return _result(compiled, query, row, with_window=with_window)


def _result(compiled: CompiledTag, query: LookupQuery, row: tuple[Any, ...], *, with_window: bool) -> LookupResult:
    """The result from the row that the database has returned."""
    version, status, modified, scope, text, since, until = row
    if version is None:
        raise GlobalTagNotFoundError(query.tag)
    state = State(version, status, modified)
    if scope == "all":
        metrics.COMPILED_ALL.inc()
        registry.learn(query.tag)
        window = window_between(moment_from(since), moment_from(until)) if with_window else None
        return LookupResult(state, text.encode(), window)
    (metrics.COMPILED_CHANGED if scope and compiled.missing else metrics.COMPILED_CONFIRMED).inc()
    if scope is None:
        return LookupResult(state, None, None)
    others = [_named(line) for line in text.split("\n")] if text else []
    edges = (moment_from(since), moment_from(until))
    return _from_files(compiled, query, state, others, edges, with_window=with_window)


def unchanged_state(compiled: CompiledTag, query: LookupQuery) -> State | None:
    """The state of the tag or revision, if the files alone can answer lookups in it; otherwise None.

    `compiled` is as for `look_up_compiled`. In a snapshot, lookups in this state need not ask the database again. Raises the
    errors of `look_up_compiled`.
    """
    if compiled.missing:
        return None
    found = look_up_compiled(compiled, query, NO_VALIDATORS, with_window=False)
    return found.state if found and is_current(compiled, found.state) else None


def is_current(compiled: CompiledTag, state: State) -> bool:
    """Whether the files have all rows in a state that a lookup in them has just returned with its rows."""
    return not compiled.missing and state.version == compiled.state.version


def look_up_unchanged(
    compiled: CompiledTag,
    query: LookupQuery,
    state: State,
    validators: Validators = NO_VALIDATORS,
    *,
    with_window: bool,
) -> LookupResult:
    """The result of a lookup in the files only, which have all rows in this state."""
    if validators.match(state):
        return LookupResult(state, None, None)
    return _from_files(compiled, query, state, with_window=with_window)


def _from_files(
    compiled: CompiledTag,
    query: LookupQuery,
    state: State,
    others: Sequence[tuple[str, bytes]] = (),
    edges: Edges = (None, None),
    *,
    with_window: bool,
) -> LookupResult:
    registry.note_use(compiled)
    asked = Query(query.moment, query.only_valid, query.as_objects, query.mode)
    return LookupResult(state, *compiled.look_up(asked, others, edges, with_window=with_window))


def _fixed_state(compiled: CompiledTag, query: LookupQuery) -> State:
    known = compiled.state
    if query.as_of is not None:
        return past_state(known.version, query.as_of)
    modified = known.modified
    return State(known.version, known.status or "", modified if modified and modified <= datetime.now(UTC) else None)


def _named(line: str) -> tuple[str, bytes]:
    """The payload type and the row in a line of the SQL function cdb_rows_of."""
    name, _, row = line.partition("\t")
    return json.loads(name), row.encode()
