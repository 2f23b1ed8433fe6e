"""Write services for global tags and their statuses: create, clone, describe, change the status, delete."""

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.history.contents import Past, past_lists, past_tag
from cdb_rest.models import (
    ChangeAction,
    DeletedGlobalTag,
    GlobalTag,
    GlobalTagChange,
    GlobalTagStatus,
    PayloadIOV,
    PayloadList,
    PayloadType,
)
from cdb_rest.rules.access import BY_THE_SYSTEM, All, Origin, Role
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import (
    ConcurrentChangeError,
    GlobalTagNotFoundError,
    PayloadTypeNotFoundError,
    StatusChangeRefusedError,
    StatusInUseError,
    StatusNotFoundError,
    quoted,
)
from cdb_rest.rules.names import NAME_LENGTH, check_new_name
from cdb_rest.rules.status import Action, Status, check_status_change, check_status_name, role_for_status
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.history import drop_history, needed_elsewhere, supersede_lists
from cdb_rest.writes.locks import (
    check_tag,
    keeps_history,
    lock_global_tag,
    lock_global_tags,
    lock_global_tags_shared,
    lock_past,
)
from cdb_rest.writes.restorations import check_not_retired
from cdb_rest.writes.transactions import write

DELETE_LISTS = named_sql.load("delete_payload_lists")
APPLY_DEFERRED_COUNTS = named_sql.load("apply_deferred_counts")
CLONE = named_sql.load("clone_global_tag")
CLONE_PAST = named_sql.load("clone_past")


@write
def create_status(*, name: str, description: str = "", origin: Origin = BY_THE_SYSTEM) -> GlobalTagStatus:
    """Create a status.

    Raises `NameTakenError`, `InvalidInputError` if the name violates the rule for new names or differs from a built-in
    status only in case, or the errors of missing permissions.
    """
    origin.principal.require(Role.MANAGER, All.ALL, All.ALL)
    check_new_name(name, settings.CDB_NAME_PATTERN)
    check_status_name(name)
    created = GlobalTagStatus.objects.create(name=name, description=description)
    created.refresh_from_db()
    return created


@write
def delete_status(*, name: str, origin: Origin = BY_THE_SYSTEM) -> None:
    """Delete a status that no tag has.

    Raises `StatusNotFoundError`, `StatusInUseError` if the status is built in or a tag has it, or the errors of missing
    permissions.
    """
    origin.principal.require(Role.MANAGER, All.ALL, All.ALL)
    if name in list(Status):
        raise StatusInUseError(f"The status {quoted(name)} is built in and cannot be deleted.")
    # A tag cannot get the status while it is locked.
    status = GlobalTagStatus.objects.select_for_update().filter(id=_status(name).id).first()
    if status is None:
        raise ConcurrentChangeError(f"The status {quoted(name)} was deleted at the same moment.")
    if users := status.global_tags.order_by("id").values_list("name", flat=True)[:3]:
        raise StatusInUseError(
            f"The status {quoted(name)} is in use by global tags, such as {', '.join(map(quoted, users))}."
        )
    status.delete()


@write
def create_global_tag(
    *, name: str, status: str, author: str = "", description: str = "", origin: Origin = BY_THE_SYSTEM
) -> GlobalTag:
    """Create an empty tag.

    Raises `InvalidInputError` for the name, `StatusNotFoundError`, `StatusChangeRefusedError` for the status frozen,
    `NameTakenError`, or the errors of missing permissions.
    """
    origin.principal.require(Role.MANAGER, name, All.ALL)
    tag, changes = add_global_tag(name=name, status=status, author=author, description=description)
    changes.record(ChangeAction.CREATE, origin)
    return _get(tag.id)


def add_global_tag(*, name: str, status: str, author: str, description: str) -> tuple[GlobalTag, Changes]:
    """Create an empty tag as part of a larger write. Returns the tag, and its changes, which the caller must record.

    The caller must be in a `write`, and must check permissions. Raises `InvalidInputError` for a name that violates the
    rule for new names, `StatusNotFoundError`, `StatusChangeRefusedError` for the status frozen, or a database error, which
    `write` translates, into `NameTakenError` if the name is taken.
    """
    check_new_name(name, settings.CDB_NAME_PATTERN)
    if status == Status.FROZEN:
        raise StatusChangeRefusedError(
            f"Global tag {quoted(name)} cannot be created as frozen, because it would stay empty: create it as unlocked, "
            "insert its payloads, and freeze it then."
        )
    tag = GlobalTag.objects.create(name=name, status=_status(status), author=author, description=description)
    changes = Changes()
    changes.of_tag(tag.id)
    return tag, changes


@write
def clone_global_tag(
    *, source: str, target: str, author: str | None = None, as_of: AsOf | None = None, origin: Origin = BY_THE_SYSTEM
) -> GlobalTag:
    """Create the unlocked tag `target` with the contents of `source`, which may have any status.

    The new lists share the rows of the lists of `source` until they are written to.

    Without `author`, the author of the copy is the actor, cut after `NAME_LENGTH` characters.

    `as_of` selects a state in the past, also of a tag that was deleted. Raises `GlobalTagNotFoundError`,
    `InvalidInputError` for the name `target`, `NameTakenError`, or the errors of missing permissions; for the past also
    `RevisionNotFoundError`, `RevisionPrunedError`, or `PayloadTypeNotFoundError` if a payload type was deleted since then.
    """
    origin.principal.require(Role.MANAGER, target, All.ALL)
    author = origin.actor[:NAME_LENGTH] if author is None else author
    if as_of is None:
        clone, changes, revision = _share_present(source, target, author)
    else:
        clone, changes, revision = _share_past(lock_past(source, as_of), target, author)
    change = changes.of_tag(clone.id)
    change.source = {"clone_of": {"global_tag": source, "revision": revision}}
    for payload_list in PayloadList.objects.filter(global_tag=clone):
        changes.attach(payload_list, clone.id)
        changes.of_list(payload_list)
    changes.record(ChangeAction.CLONE, origin)
    with connection.cursor() as cursor:
        # No other writer can see the new tag yet, so its counts can be updated now instead of at the commit.
        cursor.execute(APPLY_DEFERRED_COUNTS)
    return _get(clone.id)


def _share_present(source: str, target: str, author: str) -> tuple[GlobalTag, Changes, int]:
    original = GlobalTag.objects.filter(name=source).first()
    # Of a tag that was never recorded no revision can be locked after the clone, so no writer may come in between.
    is_recorded = original is None or GlobalTagChange.objects.filter(tag_id=original.id, global_tag=source).exists()
    lock = lock_global_tags_shared if is_recorded else lock_global_tags
    if original is None or not lock([original.id]):
        raise GlobalTagNotFoundError(source)
    clone, changes = add_global_tag(
        name=target, status=Status.UNLOCKED, author=author, description=original.description
    )
    GlobalTag.objects.filter(id=clone.id).update(largest_major=original.largest_major)
    with connection.cursor() as cursor:
        cursor.execute(CLONE, {"source_id": original.id, "target_id": clone.id})
        [(revision,)] = cursor.fetchall()
    if not keeps_history(source, revision):
        # More was written in the meantime, and the revision was pruned already.
        raise ConcurrentChangeError(f"Global tag {source} changed at the same moment; try again.")
    return clone, changes, revision


def _share_past(past: Past, target: str, author: str) -> tuple[GlobalTag, Changes, int]:
    original, lists = past_tag(past), past_lists(past)
    kinds = {payload_list.payload_type for payload_list in lists}
    missing = kinds - set(PayloadType.objects.filter(name__in=kinds).values_list("name", flat=True))
    if missing:
        raise PayloadTypeNotFoundError(min(missing))
    clone, changes = add_global_tag(
        name=target, status=Status.UNLOCKED, author=author, description=original.description
    )
    values: dict[str, str | int] = {
        "tag": past.tag,
        "revision": past.revision,
        "tag_id": past.tag_id,
        "number": past.number,
    }
    with connection.cursor() as cursor:
        cursor.execute(CLONE_PAST, values | {"target_id": clone.id})
        [(has_history, shared)] = cursor.fetchall()
    if not has_history or shared != len(lists):
        # The revision was pruned, or a payload type deleted, since the statements above.
        raise ConcurrentChangeError(f"The past of global tag {past.tag} changed at the same moment; try again.")
    return clone, changes, past.revision


@write
def change_status(*, name: str, status: str, origin: Origin = BY_THE_SYSTEM) -> GlobalTag:
    """Change the status of a tag. If an unfrozen tag has this status already, nothing changes.

    Raises `GlobalTagNotFoundError`, `StatusNotFoundError`, `TagFrozenError`, `StatusChangeRefusedError`,
    `NameRetiredError`, or the errors of missing permissions.
    """
    origin.principal.require(role_for_status(status), name, All.ALL)
    tag = lock_global_tag(name)
    new, old = _status(status), tag.status
    check_status_change(tag=tag.name, old=old.name, new=new.name)
    if new != old:
        if new.name == Status.FROZEN:
            check_not_retired(tag.name)
        GlobalTag.objects.filter(id=tag.id).update(status=new)
        changes = Changes()
        changes.of_tag(tag.id)
        changes.record(ChangeAction.STATUS, origin)
    return _get(tag.id)


@write
def delete_global_tag(*, name: str, keep_history: bool = True, origin: Origin = BY_THE_SYSTEM) -> None:
    """Delete a tag with its lists and their IOVs. Its change log is kept.

    Its past can still be asked for, unless `keep_history` is false; then it can no longer.

    Raises `GlobalTagNotFoundError`, `TagLockedError`, `TagFrozenError`, or the errors of missing permissions.
    """
    tag = lock_global_tag(name)
    check_tag(tag, Action.DELETE, origin)
    lists = list(PayloadList.objects.filter(global_tag=tag).order_by("id").select_for_update())
    ids = [payload_list.id for payload_list in lists]
    if not keep_history:
        # It waits for clones of past revisions, which begin to share the rows.
        drop_history(tag.id)
    # The past of other tags in which a list was before needs its rows in any case, and so do clones.
    with_rows = [payload_list.id for payload_list in lists if payload_list.base_list_id is None]
    supersede_lists(with_rows if keep_history else needed_elsewhere(tag.id, with_rows))
    if keep_history:
        DeletedGlobalTag.objects.create(
            id=tag.id, name=tag.name, author=tag.author, description=tag.description, created=tag.created
        )
    changes = Changes()
    changes.of_tag(tag.id)
    for payload_list in lists:
        changes.detach(payload_list)
        changes.of_list(payload_list)
    changes.record(ChangeAction.DELETE, origin)
    if not keep_history:
        drop_history(tag.id)
    PayloadIOV.objects.filter(payload_list__in=with_rows).delete()
    with connection.cursor() as cursor:
        cursor.execute(DELETE_LISTS, {"list_ids": ids})
    tag.delete()


def _get(tag_id: int) -> GlobalTag:
    """The current row of the tag, with its status."""
    return GlobalTag.objects.select_related("status").get(id=tag_id)


@write
def describe_global_tag(
    *, name: str, author: str | None = None, description: str | None = None, origin: Origin = BY_THE_SYSTEM
) -> GlobalTag:
    """Set the author and the description of a tag; None leaves a text as it is. If they do not differ, nothing changes.

    Raises `GlobalTagNotFoundError`, `TagFrozenError`, or the errors of missing permissions.
    """
    tag = lock_global_tag(name)
    check_tag(tag, Action.DESCRIBE, origin)
    before = {"author": tag.author, "description": tag.description}
    given = {"author": author, "description": description}
    after = before | {key: text for key, text in given.items() if text is not None}
    if after != before:
        GlobalTag.objects.filter(id=tag.id).update(**after)
        changes = Changes()
        changes.of_tag(tag.id).source = {"before": before, "after": after}
        changes.record(ChangeAction.DESCRIBE, origin)
    return GlobalTag.objects.select_related("status").get(id=tag.id)


def _status(name: str) -> GlobalTagStatus:
    status = GlobalTagStatus.objects.filter(name=name).first()
    if status is None:
        raise StatusNotFoundError(name, list(GlobalTagStatus.objects.order_by("id").values_list("name", flat=True)))
    return status
