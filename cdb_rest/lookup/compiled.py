"""Lookups in compiled tags: the database answers for what has changed, and files for the rest.

A lookup in the present asks the database in one round trip whether the tag has changed since it was compiled, and for the
rows of the lists that have changed. Frozen tags and past revisions do not change. For them each process asks the database
until it has confirmed that the files were not made from another database.
"""

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
from django.db import Error

from cdb_rest import named_sql
from cdb_rest.compiled.compiler import database_identity
from cdb_rest.compiled.intervals import Booleans
from cdb_rest.compiled.registry import registry
from cdb_rest.compiled.tag import Changes, CompiledTag
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.history.contents import find_past
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
    window_between,
)
from cdb_rest.observe import metrics
from cdb_rest.rules.errors import GlobalTagNotFoundError
from cdb_rest.rules.moment import Interval, Moment
from cdb_rest.rules.status import Status

CALL = named_sql.load("call_lookup_since")
CALL_KNOWN = named_sql.load("call_lookup_known")


def look_up_compiled(
    compiled: CompiledTag, query: LookupQuery, validators: Validators, *, with_window: bool
) -> LookupResult | None:
    """The result of a lookup in a compiled tag; None if its files cannot be used, so that the database has to answer.

    They cannot be used if an earlier lookup found that nearly all lists have changed; if the revision belongs to another
    database; or if the tag is frozen, the files are not confirmed yet, and the database does not respond. `compiled` must be
    of the present state for a query of the present, and of the revision for a query of a revision. Raises the errors of
    `look_up_here`, and `django.db.Error` if the database does not respond for a tag that is not frozen.
    """
    past = query.as_of
    if past is None and compiled.is_outdated:
        metrics.COMPILED_ALL.inc()
        return None
    if past is not None:
        if not compiled.is_confirmed and not _confirm_past(compiled, query):
            return None
        metrics.COMPILED_ALONE.inc()
        return _alone(compiled, query, past_state(compiled.manifest.past_version or "", past), validators, with_window)
    if compiled.manifest.status == Status.FROZEN and compiled.is_confirmed:
        metrics.COMPILED_ALONE.inc()
        return _alone(compiled, query, _present_state(compiled), validators, with_window)
    return _with_database(compiled, query, validators, with_window=with_window)


def unchanged_state(compiled: CompiledTag, query: LookupQuery) -> State | None:
    """The state of the tag or revision, if the files alone can answer lookups in it; otherwise None.

    `compiled` is as for `look_up_compiled`. In a snapshot, lookups in this state need not ask the database again. Raises the
    errors of `look_up_here`.
    """
    found = look_up_compiled(compiled, query, NO_VALIDATORS, with_window=False)
    if found is None:
        return None
    return found.state if query.as_of is not None or is_current(compiled, found.state) else None


def is_current(compiled: CompiledTag, state: State) -> bool:
    """Whether the files have all rows in a state of the present, which a lookup in them has just returned with its rows."""
    # A compiled tag of another database is outdated, even if the version is the same.
    return state.version == compiled.manifest.version and not compiled.is_outdated


def look_up_unchanged(
    compiled: CompiledTag,
    query: LookupQuery,
    state: State,
    validators: Validators = NO_VALIDATORS,
    *,
    with_window: bool,
) -> LookupResult:
    """The result of a lookup in the files only, which have all rows in this state."""
    return _alone(compiled, query, state, validators, with_window)


def _confirm_past(compiled: CompiledTag, query: LookupQuery) -> bool:
    """Whether the database is the one from which a past revision was compiled, and the revision can be asked for."""
    assert query.as_of is not None  # noqa: S101 -- for the type checker
    if database_identity() != compiled.manifest.database:
        return False
    compiled.is_confirmed = find_past(query.tag, query.as_of).version == compiled.manifest.past_version
    return compiled.is_confirmed


def _present_state(compiled: CompiledTag) -> State:
    manifest = compiled.manifest
    modified = manifest.last_modified
    return State(
        manifest.version,
        manifest.status or "",
        modified if modified is not None and modified <= datetime.now(UTC) else None,
    )


def _alone(
    compiled: CompiledTag, query: LookupQuery, state: State, validators: Validators, with_window: bool
) -> LookupResult:
    """The result from the files only."""
    registry.note_use(compiled)
    if validators.match(state):
        return LookupResult(state, None, None)
    starts = compiled.starts_until(query.moment)
    body = compiled.answer(starts, query)
    window = window_between(*compiled.window(compiled.all, starts, query)) if with_window else None
    return LookupResult(state, body, window)


def _with_database(
    compiled: CompiledTag, query: LookupQuery, validators: Validators, *, with_window: bool, lists: int | None = None
) -> LookupResult | None:
    """The result of a lookup in the present, for which the database is asked what has changed.

    `lists` is the number of lists for which the database need not name the unchanged ones, by default that of the compiled tag.
    """
    parameters = {"tag": query.tag} | parameters_of(query) | _parameters_of(compiled)
    parameters |= {"versions": list(validators.versions), "modified": validators.modified, "with_window": with_window}
    if lists is not None:
        parameters["lists"] = lists
    known = compiled.changes
    row = _ask(compiled, parameters, known)
    if row is None:
        return None
    version, status, modified, scope, text, since, until, changed, unchanged = row
    if version is None:
        raise GlobalTagNotFoundError(query.tag)
    state = State(version, status, modified)
    if scope == "compiled":
        compiled.is_confirmed = True
        metrics.COMPILED_CONFIRMED.inc()
        return _alone(compiled, query, state, NO_VALIDATORS, with_window)
    window = (moment_from(since), moment_from(until)) if with_window else None
    if scope in ("changed", "known"):
        if scope == "changed":
            known = compiled.changes = _changes(compiled, version, changed, unchanged)
        if known is None:
            # No tag has this number of lists, so all unchanged ones are named.
            return _with_database(compiled, query, validators, with_window=with_window, lists=-1)
        return _partly(compiled, query, state, text, window, known.same)
    registry.note_use(compiled)
    if scope is None:
        metrics.COMPILED_CONFIRMED.inc()
        return LookupResult(state, None, None)
    metrics.COMPILED_ALL.inc()
    # It remains so: a list that has changed once differs from the compiled one forever.
    compiled.is_outdated = True
    registry.note_whole(query.tag)
    return LookupResult(state, text.encode(), window and window_between(*window))


def _changes(compiled: CompiledTag, version: str, changed: list[int], unchanged: list[int] | None) -> Changes | None:
    """The changes in a version, from the ids of the lists; None if as many lists were added as have gone.

    `unchanged` is None if the tag has as many lists as the compiled one. Then the unchanged lists are all compiled ones but the
    changed ones, unless a changed list is a new one, so that another one must have gone.
    """
    if unchanged is not None:
        return Changes(version, changed, compiled.mask(unchanged))
    if all(list_id in compiled.positions for list_id in changed):
        return Changes(version, changed, ~compiled.mask(changed))
    return None


def _ask(compiled: CompiledTag, parameters: dict[str, Any], known: Changes | None) -> tuple[Any, ...] | None:
    """The row that the database returns, or None if it is down and the tag is frozen.

    `known` is what has changed in a version, if that is known. After None, the caller can use a replica.
    """
    try:
        if known is None:
            [row] = fetch_all(CALL, parameters, count_started)
        else:
            changes = {"known_version": known.version, "known_changed": known.lists}
            [row] = fetch_all(CALL_KNOWN, parameters | changes, count_started)
    except Error:
        if compiled.manifest.status == Status.FROZEN:
            return None
        raise
    metrics.LOOKUPS_FINISHED.inc()
    return row


def _parameters_of(compiled: CompiledTag) -> dict[str, Any]:
    manifest = compiled.manifest
    return {
        "database": manifest.database,
        "tag_id": manifest.tag_id,
        "compiled_version": manifest.version,
        "revision": manifest.revision,
        "changed": manifest.changed,
        "horizon": manifest.horizon,
        "young_lists": list(compiled.young),
        "young_versions": list(compiled.young.values()),
        "lists": len(manifest.lists),
    }


def _partly(
    compiled: CompiledTag,
    query: LookupQuery,
    state: State,
    text: str | None,
    window: tuple[Moment | None, Moment | None] | None,
    same: Booleans,
) -> LookupResult:
    """The result from the files for the lists that are the `same`, and from what the database answered for the others."""
    starts = compiled.starts_until(query.moment) * same
    changed = [_named(line) for line in text.split("\n")] if text else []
    metrics.COMPILED_CHANGED.inc()
    registry.note_use(compiled, len(changed))
    found: Interval | None = None
    if window is not None:
        edges = (window, compiled.window(np.flatnonzero(same), starts, query))
        found = window_between(
            max((since for since, _ in edges if since is not None), default=None),
            min((until for _, until in edges if until is not None), default=None),
        )
    return LookupResult(state, compiled.answer(starts, query, changed), found)


def _named(line: str) -> tuple[str, bytes]:
    """The payload type and the row in a line of the SQL function cdb_rows_of."""
    name, _, row = line.partition("\t")
    return json.loads(name), row.encode()
