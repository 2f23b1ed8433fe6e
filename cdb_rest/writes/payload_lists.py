"""Write services for payload lists: create, attach, delete."""

from collections.abc import Sequence

from django.db import connection
from django.db.models import Count, QuerySet
from django.db.models.functions import Now

from cdb_rest import named_sql
from cdb_rest.models import ChangeAction, GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.access import BY_THE_SYSTEM, Origin, Role
from cdb_rest.rules.errors import (
    ConcurrentChangeError,
    GlobalTagNotFoundError,
    PayloadListNotEmptyError,
    PayloadListNotFoundError,
    PayloadTypeNotFoundError,
    existing,
)
from cdb_rest.rules.status import ROLES, Action
from cdb_rest.writes import limits
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.locks import check_list, check_owner, check_tag, lock_global_tags, lock_payload_list
from cdb_rest.writes.transactions import write

CREATE = named_sql.load("create_payload_lists")


@write
def create_payload_list(*, payload_type: str, origin: Origin = BY_THE_SYSTEM) -> PayloadList:
    """Create an empty, detached list named ``<payload type>_<id>``.

    Raises `PayloadTypeNotFoundError`, or the errors of missing permissions.
    """
    origin.principal.require(Role.CONTRIBUTOR, None, payload_type)
    found = existing(PayloadType.objects.filter(name=payload_type).first(), PayloadTypeNotFoundError(payload_type))
    return create_lists([(found, None)], creator=origin.principal.identity)[0]


def create_lists(wanted: Sequence[tuple[PayloadType, GlobalTag | None]], *, creator: str = "") -> list[PayloadList]:
    """Create empty lists of these types in these tags (None: detached) as part of a larger write, by one statement.

    `creator` is the identity of the principal that may write to detached lists.

    Returns the lists in order, with their types and tags. The caller must check permissions, lock the tags and record
    their changes. If a tag has a list of a type already, a database error is raised, which `write` translates into
    `ConcurrentChangeError`.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            CREATE,
            {
                "payload_type_ids": [payload_type.id for payload_type, _ in wanted],
                "global_tag_ids": [tag and tag.id for _, tag in wanted],
                "creator": creator or None,
            },
        )
        ids = [list_id for (list_id,) in cursor.fetchall()]
    created = PayloadList.objects.in_bulk(ids)
    for list_id, (payload_type, tag) in zip(ids, wanted, strict=True):
        created[list_id].payload_type, created[list_id].global_tag = payload_type, tag
    return [created[list_id] for list_id in ids]


@write
def attach_payload_list(
    *, global_tag: str, payload_list: str, origin: Origin = BY_THE_SYSTEM
) -> tuple[PayloadList, dict[str, int]]:
    """Attach a list to a tag. The tag's current list of the same type, if any, is detached.

    Returns the list, and the numbers of its IOVs that other clients have added while it was detached, by client.

    If the list is attached to this tag already, nothing changes. If it is attached to another tag, it is moved; then
    the status of that tag must permit the removal, too.

    Raises `GlobalTagNotFoundError`, `PayloadListNotFoundError`, `TagLockedError` (also if a protected tag has a list of
    this type), `TagFrozenError`, `ConcurrentChangeError`, or those of missing permissions.
    """
    source, target, moved, replaced = _lock_for_attachment(payload_list, global_tag)
    payload_type = moved.payload_type.name
    if source == target:
        origin.principal.require(Role.CONTRIBUTOR, target.name, payload_type)
        return _get(moved.id), {}
    if source:
        check_tag(source, Action.REMOVE_LIST, origin, payload_type)
    check_tag(target, Action.REMOVE_LIST if replaced else Action.ADD_LIST, origin, payload_type)
    if not source:
        check_owner(moved, ROLES[Action.ADD_LIST], origin, payload_type)
    for tag, item in [(source, moved), (target, moved), *((target, item) for item in replaced)]:
        if tag is not None:
            limits.check_list(tag, item.id)
    changes = Changes()
    for item in [moved, *replaced]:
        changes.detach(item)
    changes.attach(moved, target.id)
    others = _rows_of_others(moved, origin)
    if others:
        changes.of_tag(target.id).source = {"added_by": others}
    detach(replaced, target)
    PayloadList.objects.filter(id=moved.id).update(global_tag=target, left_tag=None, updated=Now())
    changes.record(ChangeAction.ATTACH_LIST, origin)
    return _get(moved.id), others


def detach(lists: Sequence[PayloadList], tag: GlobalTag) -> None:
    """Store that lists leave their tag, as part of a larger write. Only the roles for this tag permit writes to them then."""
    PayloadList.objects.filter(id__in=[item.id for item in lists]).update(
        global_tag=None, left_tag=tag.name, creator=None, updated=Now()
    )


def _rows_of_others(payload_list: PayloadList, origin: Origin) -> dict[str, int]:
    """The numbers of IOVs that other clients have added to a detached list, by client."""
    rows = PayloadIOV.objects.filter(payload_list=payload_list, creator__isnull=False)
    counts = rows.exclude(creator=origin.principal.identity).values_list("creator").annotate(Count("id"))
    return dict(counts.order_by("creator"))


@write
def delete_payload_list(*, name: str, origin: Origin = BY_THE_SYSTEM) -> None:
    """Delete an empty list.

    Raises `PayloadListNotFoundError`, `PayloadListNotEmptyError`, `TagLockedError`, `TagFrozenError`, or those of missing
    permissions.
    """
    found = lock_payload_list(name)
    origin.principal.require(Role.MANAGER, None, found.payload_type.name)
    check_list(found, Action.REMOVE_LIST, origin)
    if found.iov_count:
        raise PayloadListNotEmptyError(f"Payload list {name} still holds payload IOVs.")
    changes = Changes()
    changes.detach(found)
    found.delete()
    changes.record(ChangeAction.DELETE_LIST, origin)


def _lock_for_attachment(
    payload_list: str, global_tag: str
) -> tuple[GlobalTag | None, GlobalTag, PayloadList, list[PayloadList]]:
    """Lock what attaching the list changes: its present tag, the new tag, the list, and the lists that it replaces.

    Returns them in this order. The present tag is None if the list is detached; otherwise it may be the new tag.

    Raises `GlobalTagNotFoundError`, `PayloadListNotFoundError` or `ConcurrentChangeError`.
    """
    found = PayloadList.objects.filter(name=payload_list).values_list("id", "global_tag_id").first()
    if found is None:
        raise PayloadListNotFoundError(payload_list)
    list_id, source_id = found
    target_id = GlobalTag.objects.filter(name=global_tag).values_list("id", flat=True).first()
    if target_id is None:
        raise GlobalTagNotFoundError(global_tag)
    # The exclusive lock, because the set of the tag's lists changes.
    tags = lock_global_tags({target_id, source_id} - {None})
    if target_id not in tags:
        raise GlobalTagNotFoundError(global_tag)
    lists = {item.id: item for item in _lists_of_type(target_id, list_id).select_for_update()}
    moved = lists.pop(list_id, None)
    if moved is None:
        raise PayloadListNotFoundError(payload_list)
    if moved.global_tag_id != source_id:
        raise ConcurrentChangeError(
            f"Payload list {payload_list} was attached elsewhere at the same moment; try again."
        )
    return tags.get(source_id), tags[target_id], moved, list(lists.values())


def _get(list_id: int) -> PayloadList:
    """The current row of the list, with its tag and type."""
    return PayloadList.objects.select_related("global_tag", "payload_type").get(id=list_id)


def _lists_of_type(tag_id: int, list_id: int) -> QuerySet[PayloadList]:
    """The list `list_id` and the lists of its type that are attached to the tag, ordered by id."""
    same_type = PayloadList.objects.filter(id=list_id).values("payload_type")
    return (
        PayloadList.objects.filter(global_tag=tag_id, payload_type__in=same_type)
        | PayloadList.objects.filter(id=list_id)
    ).order_by("id")
