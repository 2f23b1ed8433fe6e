"""Locks: rows are found by name or id and locked until the transaction ends. The caller must be in a transaction.

All writers use these functions in the same order, to avoid deadlocks: for global tags, then for payload lists, then for
payload IOVs. Several objects are locked in the order of their ids.
"""

from collections.abc import Collection

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.history.contents import Past, check_readable, find_past
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.rules.access import All, Object, Origin, Role
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import (
    ConcurrentChangeError,
    GlobalTagNotFoundError,
    PayloadIOVNotFoundError,
    PayloadListNotFoundError,
    existing,
    quoted,
)
from cdb_rest.rules.status import ROLES, Action, check_permitted, role_for

ADVISORY_LOCK_SHARED = named_sql.load("advisory_lock_shared")
ADVISORY_LOCK_EXCLUSIVE = named_sql.load("advisory_lock_exclusive")
LOCK_SHARED = named_sql.load("lock_global_tags_shared")
LOCK_REVISION = named_sql.load("lock_revision")


def lock_global_tag(name: str) -> GlobalTag:
    """Lock a tag by name, exclusively: all other writers to the tag wait. Raises `GlobalTagNotFoundError`."""
    tag_id = GlobalTag.objects.filter(name=name).values_list("id", flat=True).first()
    tag = None if tag_id is None else lock_global_tags({tag_id}).get(tag_id)
    if tag is None:
        raise GlobalTagNotFoundError(name)
    return tag


def lock_global_tags(ids: Collection[int]) -> dict[int, GlobalTag]:
    """Lock tags exclusively: all other writers to them wait. Returns the tags that exist, by id."""
    with connection.cursor() as cursor:
        cursor.execute(ADVISORY_LOCK_EXCLUSIVE, {"tag_ids": sorted(ids)})
    return {tag.id: tag for tag in GlobalTag.objects.filter(id__in=ids).order_by("id").select_for_update()}


def lock_global_tags_shared(ids: Collection[int]) -> dict[int, GlobalTag]:
    """Lock tags against deletion, changes of status and attachment of lists. Many writers can have this lock at a time.

    Returns the tags that exist, by id, with their status.
    """
    if not ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(ADVISORY_LOCK_SHARED, {"tag_ids": sorted(ids)})
        cursor.execute(LOCK_SHARED, {"tag_ids": sorted(ids)})
        found = [tag_id for (tag_id,) in cursor.fetchall()]
    return {tag.id: tag for tag in GlobalTag.objects.filter(id__in=found).select_related("status")}


def lock_past(tag: str, as_of: AsOf) -> Past:
    """The state that `find_past` finds, locked so that its rows are not pruned before the write has read them.

    Raises the errors of `find_past`.
    """
    past = find_past(tag, as_of)
    check_readable(past.tag, past.revision, has_history=keeps_history(past.tag, past.revision), is_deleted=False)
    return past


def keeps_history(tag: str, revision: int) -> bool:
    """Lock a revision against the loss of its history. Returns whether it has it; also if the tag was never recorded."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK_REVISION, {"tag": tag, "revision": revision})
        return all(has_history for (has_history,) in cursor.fetchall())


def lock_payload_lists(names: Collection[str]) -> dict[str, PayloadList]:
    """Lock lists by name against other writers, and take shared locks on the tags that they are attached to.

    Returns the lists by name, with their types and tags. Lists that do not exist are left out. Raises
    `ConcurrentChangeError` if another request attached one of them to another tag at the same moment.
    """
    ids_of_tags = dict(PayloadList.objects.filter(name__in=names).values_list("name", "global_tag_id"))
    tags = lock_global_tags_shared({tag_id for tag_id in ids_of_tags.values() if tag_id is not None})
    locked = PayloadList.objects.filter(name__in=names).order_by("id").select_for_update(of=("self",), no_key=True)
    lists = {payload_list.name: payload_list for payload_list in locked.select_related("payload_type")}
    for name, payload_list in lists.items():
        tag_id = payload_list.global_tag_id
        if tag_id != ids_of_tags.get(name):
            raise ConcurrentChangeError(f"Payload list {name} was attached elsewhere at the same moment; try again.")
        payload_list.global_tag = None if tag_id is None else tags.get(tag_id)
    return lists


def lock_payload_list(name: str) -> PayloadList:
    """Lock one list, as `lock_payload_lists` does. Raises `PayloadListNotFoundError`, too."""
    found = lock_payload_lists([name])
    if not found:
        raise PayloadListNotFoundError(name)
    return found[name]


def lock_payload_list_of(global_tag: str, payload_type: str) -> PayloadList:
    """Lock the list of a type that is attached to a tag, as `lock_payload_lists` does.

    Raises `PayloadListNotFoundError` (also if there is no such tag or type) or `ConcurrentChangeError`.
    """
    lists = PayloadList.objects.filter(global_tag__name=global_tag, payload_type__name=payload_type)
    name = lists.values_list("name", flat=True).first()
    if name is None:
        raise PayloadListNotFoundError(described=f"of type {quoted(payload_type)} in global tag {quoted(global_tag)}")
    found = lock_payload_list(name)
    if found.global_tag is None or found.global_tag.name != global_tag:
        raise ConcurrentChangeError(f"Payload list {name} was attached elsewhere at the same moment; try again.")
    return found


def lock_payload_iov(iov_id: int) -> PayloadIOV:
    """Lock an IOV against other writers. Raises `PayloadIOVNotFoundError`."""
    return existing(PayloadIOV.objects.filter(id=iov_id).select_for_update().first(), PayloadIOVNotFoundError(iov_id))


def check_tag(tag: GlobalTag, action: Action, origin: Origin, payload_type: Object = All.ALL) -> None:
    """Check that the principal has the role for `action` on the tag, and that the tag's status permits the action.

    With the default `payload_type`, the role must be for all payload types. For `ADD_IOV`, the caller must also check that
    no existing interval of a protected tag changes.

    Raises `AuthenticationRequiredError`, `NotPermittedError`, `TagLockedError` or `TagFrozenError`.
    """
    origin.principal.require(role_for(action, tag.status.name), tag.name, payload_type)
    check_permitted(tag=tag.name, status=tag.status.name, action=action)


def check_list(payload_list: PayloadList, action: Action, origin: Origin) -> None:
    """Like `check_tag` for the tag of a payload list. For a detached list, like `check_owner`."""
    check_list_role(payload_list, action, origin)
    if payload_list.global_tag is not None:
        tag = payload_list.global_tag
        check_permitted(tag=tag.name, status=tag.status.name, action=action)


def check_list_role(payload_list: PayloadList, action: Action, origin: Origin) -> None:
    """Like `check_list`, but without the status of the tag."""
    tag, payload_type = payload_list.global_tag, payload_list.payload_type.name
    if tag is None:
        check_owner(payload_list, ROLES[action], origin, payload_type)
    else:
        origin.principal.require(role_for(action, tag.status.name), tag.name, payload_type)


def check_owner(owned: PayloadList | PayloadIOV, role: Role, origin: Origin, payload_type: Object = None) -> None:
    """Check that the principal may write to a detached list or IOV.

    This is its creator, or whoever has `role` for the tag that it left, or the role contributor for all tags. Raises
    `AuthenticationRequiredError` or `NotPermittedError`.
    """
    principal = origin.principal
    if principal.permission(Role.CONTRIBUTOR, All.ALL, payload_type):
        return
    if owned.left_tag is not None:
        principal.require(role, owned.left_tag, payload_type)
    elif owned.creator and owned.creator == principal.identity:
        principal.require(Role.CONTRIBUTOR, None, payload_type)
    else:
        principal.require(Role.CONTRIBUTOR, All.ALL, payload_type)
