"""Repair of the history, without inventing any: what cannot be trusted is dropped, and the history goes on from the present.

The present never changes: not the rows, not the lists of tags, not their status.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

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
from cdb_rest.writes.history import next_version
from cdb_rest.writes.sharing import unshare
from cdb_rest.writes.transactions import write

LOCK = named_sql.load("lock_history_for_repair")
DROP_HISTORY = named_sql.load("drop_history_of_lists")


@dataclass
class Repaired:
    """The result of a repair: the remaining faults, and the revisions that lost their history, by global tag."""

    left: list[HistoryFault] = field(default_factory=list)
    dropped: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))


@write
def repair_history(*, global_tag: str | None = None, origin: Origin) -> Repaired:
    """Repair the faults of the history, or those of one tag.

    - The past of a list with a fault in its rows is deleted, and the revisions that need it lose their history. The list goes on
      with a new version, and its tag with a new revision. Lists that share its rows get copies of them before.
    - Memberships begin and end now, with a new revision of the tag. If lists are in two tags, or a tag is missing, all revisions
      of the tag lose their history.
    - The status in the newest entry of the change log becomes that of the tag. If the entry is not of the present revision
      or the present tag, the tag gets a new revision.

    Frozen tags get no new revision, so what needs one remains a fault there. Counts are repaired first, in all tags and
    lists. Writers wait meanwhile, readers do not. Raises `GlobalTagNotFoundError`.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK)
    # No response has ever contained them.
    PayloadIOV.objects.filter(payload_list__base_list_id__isnull=False).update(payload_list=None, added_in=0)
    repair_counts()
    repaired = Repaired(find_history_faults(global_tag=global_tag))
    _restart_tags(repaired, origin)
    tried: set[int] = set()
    copied: set[int] = set()
    # Copies of faulty rows are found to be faulty only once they are a list's own.
    while True:
        repaired.left = find_history_faults(global_tag=global_tag, also=copied)
        faulty = {fault.list_id for fault in repaired.left if fault.kind in OF_ROWS and fault.list_id is not None}
        if faulty <= tried:
            return repaired
        frozen = PayloadList.objects.filter(id__in=faulty, global_tag__status__name=Status.FROZEN)
        copied |= _restart_lists(faulty - tried - set(frozen.values_list("id", flat=True)), repaired, origin)
        tried |= faulty


def _restart_tags(repaired: Repaired, origin: Origin) -> None:
    """Repair the newest changes and the memberships of tags."""
    faults: dict[str, set[int | None]] = defaultdict(set)
    for fault in repaired.left:
        faults[fault.kind].add(fault.tag_id)
    for tag in GlobalTag.objects.filter(id__in=faults["status"]).select_related("status"):
        GlobalTagChange.objects.filter(global_tag=tag.name, revision=tag.revision).update(status=tag.status.name)
    statuses: dict[int | None, str] = dict(GlobalTag.objects.values_list("id", "status__name"))
    faulty = {
        tag
        for tag in faults["newest change"] | faults["membership"] | faults["two tags"]
        if statuses.get(tag) != Status.FROZEN
    }
    # Revisions in which a list is in two tags cannot be trusted, nor can those of a tag that another program deleted.
    lost = {tag for tag in faulty if tag in faults["two tags"] or tag not in statuses}
    PayloadListMembership.objects.filter(tag_id__in=lost).delete()
    with_history = GlobalTagChange.objects.filter(tag_id__in=lost, has_history=True)
    for name, revision in with_history.values_list("global_tag", "revision"):
        repaired.dropped[name].add(revision)
    with_history.update(has_history=False)
    changes = Changes()
    for tag_id in faulty & statuses.keys():
        if tag_id is not None:
            changes.of_tag(tag_id).has_other_lists = True
    changes.record(ChangeAction.REPAIR, origin)


def _restart_lists(ids: Collection[int], repaired: Repaired, origin: Origin) -> set[int]:
    """Delete the past of lists, which may be deleted, and begin again with a new version.

    Returns the lists that shared rows of these lists. They have copies then, also of versions that they shared before.
    """
    unshare(list(PayloadList.objects.filter(base_list_id__in=ids).order_by("id")))
    sharing = PayloadListVersion.objects.filter(base_list_id__in=ids)
    # A list that exists was written to since then, and has had copies from the same version on.
    copied = set(PayloadList.objects.filter(id__in=sharing.values("payload_list_id")).values_list("id", flat=True))
    sharing.filter(payload_list_id__in=copied).update(base_list_id=None, base_version=None)
    PayloadIOVHistory.objects.filter(payload_list_id__in=ids).delete()
    PayloadListVersion.objects.filter(payload_list_id__in=ids).delete()
    changes = Changes()
    for payload_list in PayloadList.objects.filter(id__in=ids).order_by("id"):
        PayloadIOV.objects.filter(payload_list=payload_list).update(added_in=next_version(payload_list))
        changes.of_list(payload_list)
    changes.record(ChangeAction.REPAIR, origin)
    with connection.cursor() as cursor:
        cursor.execute(DROP_HISTORY, {"list_ids": list(ids)})
        for name, revision in cursor.fetchall():
            repaired.dropped[name].add(revision)
    sharing.delete()
    return copied
