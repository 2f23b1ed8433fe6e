"""Repair of the history, without inventing any: what cannot be trusted is dropped, and the history goes on from the present.

The present never changes: not the rows, not the lists of tags, not their status.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.maintenance.history_check import OF_ROWS, HistoryFault, find_history_faults
from cdb_rest.maintenance.repair import repair_counts
from cdb_rest.models import (
    ChangeAction,
    GlobalTag,
    GlobalTagChange,
    PayloadIOV,
    PayloadIOVHistory,
    PayloadList,
    PayloadListMembership,
    PayloadListVersion,
)
from cdb_rest.rules.access import Origin
from cdb_rest.rules.status import Status
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.history import ListChange, next_version, supersede
from cdb_rest.writes.rows import interval_of
from cdb_rest.writes.transactions import write

LOCK = named_sql.load("lock_history_for_repair")
UNRECORDED = named_sql.load("unrecorded_iovs")
OVERLAPPING = named_sql.load("overlapping_memberships")
END_MEMBERSHIPS = named_sql.load("end_memberships_of_missing_tags")
DROP_HISTORY = named_sql.load("drop_history_of_memberships")

# The name of a global tag, and a revision.
Revision = tuple[str, int]


@dataclass
class Repaired:
    """The result of a repair: the remaining faults, and the revisions that lost their history, by global tag."""

    left: list[HistoryFault] = field(default_factory=list)
    dropped: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


def repair_history(*, global_tag: str | None = None, origin: Origin) -> Repaired:
    """Repair the faults of the history, or those of one tag.

    SQL by other programs changes the present without storing the past. So rows that were inserted appear in all earlier
    versions, rows that were deleted are missing there, and lists appear or are missing in earlier revisions.

    - Memberships begin and end now, with a new revision of the tag.
    - The status in the newest entry of the change log becomes that of the tag. If the entry is not of the present revision
      or the present tag, the tag gets a new revision.
    - Rows that other programs inserted are in the history from a new version of their list on.
    - If the past of a list is still faulty, it is deleted, and the revisions that need it lose their history. The list goes on
      with a new version, and its tag with a new revision.

    Frozen tags get no new revision, so what needs one remains a fault there. Counts are repaired first, in all tags and
    lists. Writers wait meanwhile, readers do not. Raises `GlobalTagNotFoundError`.
    """
    dropped = _repair_records(global_tag=global_tag, origin=origin)
    also_dropped, left = _restart_lists(global_tag=global_tag, origin=origin)
    repaired = Repaired(left)
    for tag, revision in sorted(dropped + also_dropped):
        repaired.dropped[tag].append(revision)
    return repaired


@write
def _repair_records(*, global_tag: str | None, origin: Origin) -> list[Revision]:
    """Repair memberships, the newest changes, and rows that other programs inserted. Returns what lost its history."""
    _lock()
    repair_counts()
    faults = find_history_faults(global_tag=global_tag)
    changes = Changes()
    periods = _end_memberships(faults, changes)
    _repair_newest_changes(faults, changes)
    _add_unrecorded(_unfrozen_lists(faults), changes)
    changes.record(ChangeAction.REPAIR, origin)
    return _drop_history([], periods)


@write
def _restart_lists(*, global_tag: str | None, origin: Origin) -> tuple[list[Revision], list[HistoryFault]]:
    """Delete the past of lists that is still faulty, and begin again with a new version.

    Returns what lost its history, and the remaining faults.
    """
    _lock()
    faults = find_history_faults(global_tag=global_tag)
    existing = {item.id: item for item in _unfrozen_lists(faults)}
    faulty = {fault.list_id for fault in faults if fault.kind in OF_ROWS and fault.list_id is not None}
    ids = [
        list_id
        for list_id in sorted(faulty)
        if list_id in existing or not PayloadList.objects.filter(id=list_id).exists()
    ]
    PayloadIOVHistory.objects.filter(payload_list_id__in=ids).delete()
    PayloadListVersion.objects.filter(payload_list_id__in=ids).delete()
    changes = Changes()
    for payload_list in existing.values():
        PayloadIOV.objects.filter(payload_list=payload_list).update(added_in=next_version(payload_list))
        changes.of_list(payload_list)
    changes.record(ChangeAction.REPAIR, origin)
    return _drop_history(ids, []), find_history_faults(global_tag=global_tag)


def _lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute(LOCK)


def _unfrozen_lists(faults: Collection[HistoryFault]) -> list[PayloadList]:
    """The existing lists with faults in their rows, except those of frozen tags."""
    ids = {fault.list_id for fault in faults if fault.kind in OF_ROWS}
    lists = PayloadList.objects.filter(id__in=ids).order_by("id")
    return list(lists.exclude(global_tag__status__name=Status.FROZEN))


def _unfrozen_tags(ids: Collection[int | None]) -> list[int]:
    tags = GlobalTag.objects.filter(id__in=ids).exclude(status__name=Status.FROZEN)
    return list(tags.order_by("id").values_list("id", flat=True))


# A period of a tag: its id, and the numbers of the first change and of the one after the last (None: until now).
Period = tuple[int, int, int | None]


def _end_memberships(faults: Collection[HistoryFault], changes: Changes) -> list[Period]:
    """Note tags whose memberships must be compared with their lists. Overlapping memberships are deleted.

    Returns the periods of those: the revisions of then cannot be trusted.
    """
    lists = {fault.list_id for fault in faults if fault.kind in ("membership", "two tags")}
    with connection.cursor() as cursor:
        cursor.execute(END_MEMBERSHIPS, {"list_ids": list(lists)})
        cursor.execute(OVERLAPPING, {"list_ids": [fault.list_id for fault in faults if fault.kind == "two tags"]})
        overlapping = cursor.fetchall()
    PayloadListMembership.objects.filter(id__in=[row[0] for row in overlapping]).delete()
    tags = {fault.tag_id for fault in faults if fault.kind == "membership"}
    tags |= {tag_id for _, tag_id, _, _, is_present in overlapping if is_present}
    for tag_id in _unfrozen_tags(tags):
        changes.of_tag(tag_id).has_other_lists = True
    return [(tag_id, added_in, removed_in) for _, tag_id, added_in, removed_in, _ in overlapping]


def _repair_newest_changes(faults: Collection[HistoryFault], changes: Changes) -> None:
    tags = GlobalTag.objects.filter(id__in=[fault.tag_id for fault in faults if fault.kind == "status"])
    for tag in tags.select_related("status"):
        GlobalTagChange.objects.filter(global_tag=tag.name, revision=tag.revision).update(status=tag.status.name)
    for tag_id in _unfrozen_tags([fault.tag_id for fault in faults if fault.kind == "newest change"]):
        changes.of_tag(tag_id)


def _add_unrecorded(lists: Collection[PayloadList], changes: Changes) -> None:
    """Let the history of rows that other programs inserted begin now."""
    with connection.cursor() as cursor:
        cursor.execute(UNRECORDED, {"list_ids": [item.id for item in lists]})
        unrecorded = {iov_id for _, iov_id in cursor.fetchall()}
    for payload_list in lists:
        iovs = PayloadIOV.objects.filter(payload_list=payload_list).order_by("comb_iov", "id")
        after = [(interval_of(iov).start, iov) for iov in iovs]
        before = [(start, iov) for start, iov in after if iov.id not in unrecorded]
        if len(before) == len(after):
            continue
        supersede([ListChange(payload_list, before, after)], changes)
        ids = [iov.id for _, iov in after if iov.id in unrecorded]
        PayloadIOV.objects.filter(id__in=ids).update(added_in=next_version(payload_list))


def _drop_history(lists: Collection[int], periods: Collection[Period]) -> list[Revision]:
    """Note that revisions which need the past of lists, or are in one of the periods, cannot be asked for any more.

    The newest revision of an existing tag stays, so the tags must have got a new one. Returns the others.
    """
    values: dict[str, Any] = {
        "list_ids": list(lists),
        "tag_ids": [tag_id for tag_id, _, _ in periods],
        "firsts": [first for _, first, _ in periods],
        "lasts": [last for _, _, last in periods],
    }
    with connection.cursor() as cursor:
        cursor.execute(DROP_HISTORY, values)
        dropped: list[Revision] = cursor.fetchall()
        return dropped
