"""Write service that undoes one change of a global tag, and leaves the later ones."""

import copy
from collections.abc import Iterable
from typing import Any

from cdb_rest.analysis.explanation import explain
from cdb_rest.history.changes import lists_around, previous_change
from cdb_rest.history.contents import TagList, iovs_of
from cdb_rest.models import (
    ChangeAction,
    GlobalTag,
    GlobalTagChange,
    PayloadIOV,
    PayloadListMembership,
    PayloadListVersion,
)
from cdb_rest.rules.access import BY_THE_SYSTEM, Origin, Role
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import ChangeNotFoundError, GlobalTagNotFoundError, UndoConflictError, quoted
from cdb_rest.rules.moment import Moment
from cdb_rest.rules.status import Action, is_protected
from cdb_rest.rules.undoing import UndoObstacleError, owners, undo_rows, valid_at
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.global_tags import change_status
from cdb_rest.writes.limits import check_largest
from cdb_rest.writes.locks import check_tag, lock_global_tag, lock_past
from cdb_rest.writes.replacing import COLUMNS, Replacement, columns_of
from cdb_rest.writes.reverting import Reversion, TypePair, TypePlan, list_rows, lock_pairs, plan_type
from cdb_rest.writes.rows import new_iov, set_interval
from cdb_rest.writes.sharing import stored_rows
from cdb_rest.writes.transactions import write

# What to do instead of undoing a change that cannot be undone.
INSTEAD = {
    ChangeAction.CREATE: "it created the tag. Delete the tag instead.",
    ChangeAction.CLONE: "it created the tag. Delete the tag instead.",
    ChangeAction.SEED: "it created the contents of the tag. Delete the tag instead.",
    ChangeAction.ADOPT: "it copied the tag from another database. Revert the tag to an earlier revision, or delete it instead.",
    ChangeAction.DESCRIBE: "it changed the author or the description of the tag. Set them again instead.",
    ChangeAction.LIMITS: "it changed the limits of the tag. Set them instead.",
    ChangeAction.RESTORE: "it records a restoration of the database, and changed nothing in the tag.",
    ChangeAction.DELETE: "it deleted the tag. Export the revision before it, and import the file into a new tag.",
}
# Obstacles that an error names.
NAMED = 10


@write
def undo_change(*, name: str, revision: int, origin: Origin = BY_THE_SYSTEM) -> Reversion:
    """Undo the change of a tag that made a revision, as one new change.

    What later changes made valid stays (`cdb_rest.rules.undoing`). Payload lists that the change detached are attached again, and
    those that it attached are detached, if the tag has them as the change left them. A change of the status is undone by another
    one. If nothing of the change is left, nothing changes.

    It needs the roles and the status of an insertion, or of a removal where no payload would be valid any more.

    Raises `GlobalTagNotFoundError`, `ChangeNotFoundError`, `RevisionPrunedError`, `UndoConflictError`, `TagLockedError`,
    `TagFrozenError`, `TagLimitError`, `ConcurrentChangeError`, the errors of a change of the status, or those of missing
    permissions.
    """
    origin.principal.require(Role.CONTRIBUTOR, name)
    change = _find(name, revision)
    tag = lock_global_tag(name)
    if change.tag_id != tag.id:
        raise UndoConflictError(f"Revision {revision} is a change of an earlier global tag of the name {name}.")
    previous = previous_change(change)
    for kept in (previous, change):
        if kept is not None:
            lock_past(name, AsOf(revision=kept.revision))
    if change.action == ChangeAction.STATUS and previous is not None:
        return _undo_status(tag, change, previous.status, origin)
    return _undo_contents(tag, change, origin)


def _find(name: str, revision: int) -> GlobalTagChange:
    change = GlobalTagChange.objects.filter(global_tag=name, revision=revision).first()
    if change is None:
        if not GlobalTag.objects.filter(name=name).exists():
            raise GlobalTagNotFoundError(name)
        raise ChangeNotFoundError(described=f"of global tag {quoted(name)} with revision {revision}")
    if change.action in INSTEAD:
        raise UndoConflictError(
            f"Revision {revision} of global tag {name} cannot be undone: {INSTEAD[ChangeAction(change.action)]}"
        )
    return change


def _undo_status(tag: GlobalTag, change: GlobalTagChange, status: str, origin: Origin) -> Reversion:
    if tag.status.name != change.status:
        raise UndoConflictError(f"The status of global tag {tag.name} is {tag.status.name} now, not {change.status}.")
    if status == change.status:
        return Reversion(None, [])
    return Reversion(change_status(name=tag.name, status=status, origin=origin).revision, [], status)


def _undo_contents(tag: GlobalTag, change: GlobalTagChange, origin: Origin) -> Reversion:
    was, had = ({one.payload_type: one for one in lists} for lists in lists_around(change))
    pairs = {pair.payload_type: pair for pair in lock_pairs(tag, list(was.values()))}
    changes, types = Changes(), []
    obstacles: list[str] = []
    for kind in sorted({*was, *had}):
        before, after = was.get(kind), had.get(kind)
        if _version(before) == _version(after):
            continue
        try:
            plan = _plan(pairs.get(kind, TypePair(kind, None, None, None)), before, after)
        except UndoObstacleError as error:
            obstacles.append(_described(tag, change, kind, error.moment, after))
            continue
        if plan is not None and not obstacles:
            _check(plan, tag, origin)
            types.append(plan.apply(tag, changes))
    if obstacles:
        more = f"; and {len(obstacles) - NAMED} more payload types" if len(obstacles) > NAMED else ""
        raise UndoConflictError(
            f"Revision {change.revision} of global tag {tag.name} cannot be undone, because of later changes: "
            f"{'; '.join(obstacles[:NAMED])}{more}. Undo these first, or insert what should be valid."
        )
    if not types:
        return Reversion(None, [])
    changes.of_tag(tag.id).source = {"undone": {"revision": change.revision}}
    return Reversion(changes.record(ChangeAction.REVERT, origin)[tag.name], types)


def _version(payload_list: TagList | None) -> tuple[int, int] | None:
    return None if payload_list is None else (payload_list.id, payload_list.version)


def _plan(pair: TypePair, before: TagList | None, after: TagList | None) -> TypePlan | None:
    """The inverse of a change from one list to another, or of the rows of a list, None if nothing is left of it.

    Raises `UndoObstacleError`.
    """
    present = pair.present
    if present is None or after is None or present.id != after.id:
        if present is None and after is None:
            return plan_type(pair)
        raise UndoObstacleError(None)
    if present.version == after.version:
        return plan_type(pair)
    now, had = list_rows(stored_rows(present)), list_rows(_past_iovs(after))
    if [row.key for row in now] == [row.key for row in had]:
        return plan_type(pair)
    if before is not None and before.id != after.id:
        raise UndoObstacleError(None)
    merged = undo_rows(list_rows(_past_iovs(before)), had, now)
    columns: list[dict[str, Any]] = []
    ids: set[int | None] = set()
    for row, interval in merged:
        iov = row.source
        if interval != row.interval:
            iov = copy.copy(iov)
            set_interval(iov, interval)
        iov_id = None if interval.start != row.interval.start or iov.id in ids else iov.id
        ids.add(iov_id)
        columns.append(dict(zip(COLUMNS, columns_of(iov), strict=True)) | {"id": iov_id})
    rows = Replacement(present, lambda: columns)
    return TypePlan(TypePair(pair.payload_type, present, after, present), rows) if rows.differ else None


def _past_iovs(payload_list: TagList | None) -> Iterable[PayloadIOV]:
    """The rows of a list of then. The ids of rows that the list shared are those of another list."""
    for columns in iovs_of([payload_list] if payload_list else []):
        iov = new_iov({name: columns[name] for name in ("id", *COLUMNS)})
        if payload_list and payload_list.rows_list_id != payload_list.id:
            iov.id = None
        yield iov


def _check(plan: TypePlan, tag: GlobalTag, origin: Origin) -> None:
    """Raise an error unless the roles of the principal, the status and the limits of the tag permit the plan."""
    kind = plan.pair.payload_type
    before, after = plan.contents()
    if plan.replaces:
        origin.principal.require(Role.MANAGER, tag.name, kind)
        action = Action.ADD_LIST if plan.pair.present is None else Action.REMOVE_LIST
    else:
        valid = [[valid_at(owner, moment) for owner in pair] for moment, pair in owners(before, after)]
        changed = [new for old, new in valid if old is not None and old != new]
        removes = None in changed or (changed and is_protected(tag.status.name))
        action = Action.REMOVE_IOV if removes else Action.ADD_IOV
    check_tag(tag, action, origin, kind)
    plan.check_closed(tag)
    stored = {row.key for row in before}
    for row in after:
        if row.key not in stored:
            check_largest(tag, row.interval)


def _described(tag: GlobalTag, change: GlobalTagChange, kind: str, moment: Moment | None, after: TagList | None) -> str:
    """What stands in the way for a payload type, with the later change that put it there, if it is known."""
    if moment is None:
        text, found = f"{kind} has another payload list", _later_change(tag, change, kind, after)
    else:
        [[reason]] = [explain(tags=[(tag.name, None)], moment=moment, payload_types=[kind])[1]]
        payload = reason.row["payload_url"] if reason.row and reason.row["is_valid"] else "no payload"
        text, found = f"{kind} has {payload} at {moment}", reason.change
    if found is None or found.revision <= change.revision:
        return text
    undone = (found.source or {}).get("undone")
    action = f"undo of revision {undone['revision']}" if undone else found.action
    return f"{text} since revision {found.revision} ({action} by {found.actor})"


def _later_change(tag: GlobalTag, change: GlobalTagChange, kind: str, after: TagList | None) -> GlobalTagChange | None:
    """The first later change of the payload list of a type."""
    members = PayloadListMembership.objects.filter(tag_id=tag.id, payload_type=kind).values_list(
        "added_in", "removed_in"
    )
    versions = PayloadListVersion.objects.filter(payload_list_id=after.id if after else 0).values_list("number")
    numbers = [
        number for row in (*members, *versions) for number in row if number is not None and number > change.number
    ]
    return GlobalTagChange.objects.filter(tag_id=tag.id, number=min(numbers)).first() if numbers else None
