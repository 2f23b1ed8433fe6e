"""The history of payload lists: superseded rows and areas of rows are stored before a write changes them.

`cdb_rest.models.history` describes the tables.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from cdb_rest.models import GlobalTagChange, PayloadIOV, PayloadList, PayloadListMembership, PayloadListVersion
from cdb_rest.models.payload_iov import load_statement
from cdb_rest.rules.moment import Moment
from cdb_rest.rules.timeline import superseded_areas
from cdb_rest.writes.change_log import Changes

STORE = load_statement("store_superseded")
STORE_LISTS = load_statement("store_superseded_lists")

# The rows of a list with their starts.
Rows = Sequence[tuple[Moment, PayloadIOV]]


@dataclass(frozen=True)
class ListChange:
    """A change of a list's rows: `before` are the stored rows as they are, `after` the rows that will be stored.

    Both are as `superseded_areas` expects them, and the IOVs are the keys: an IOV that does not change must be the same
    object in both, and one that changes must not.
    """

    payload_list: PayloadList
    before: Rows
    after: Rows


def supersede(list_changes: Iterable[ListChange], changes: Changes) -> list[PayloadIOV]:
    """Store what changes of lists supersede, and note the lists and the numbers of IOVs in `changes`.

    Call it before anything is stored. Returns the unchanged IOVs whose areas grow, with a new `added_in`; the caller
    must store them. It must also set `added_in` of all new and changed IOVs to `next_version`.
    """
    values: dict[str, list[Any]] = {"ids": [], "sinces": [], "untils": [], "versions": []}
    grown: list[tuple[PayloadIOV, int]] = []
    for change in list_changes:
        version = next_version(change.payload_list)
        rows = {id(iov): iov for _, iov in change.before}
        areas, grown_keys = superseded_areas(_with_keys(change.before), _with_keys(change.after))
        values["ids"] += [rows[area.key].id for area in areas]
        values["sinces"] += (area.since and area.since.combined for area in areas)
        values["untils"] += (area.until and area.until.combined for area in areas)
        values["versions"] += [version for _ in areas]
        grown += [(rows[key], version) for key in grown_keys]
        _count(change, version, changes)
    if values["ids"]:
        with connection.cursor() as cursor:
            cursor.execute(STORE, values)
    for iov, version in grown:
        iov.added_in = version
    return [iov for iov, _ in grown]


def _with_keys(rows: Rows) -> list[tuple[Moment, int]]:
    return [(start, id(iov)) for start, iov in rows]


def _count(change: ListChange, version: int, changes: Changes) -> None:
    before, after = {id(iov) for _, iov in change.before}, {id(iov) for _, iov in change.after}
    removed = [iov for _, iov in change.before if id(iov) not in after]
    # An IOV that the same write added before is none that it added, and none that it removed.
    transient = sum(iov.added_in == version for iov in removed)
    changes.of_list(change.payload_list, removed=len(removed) - transient, added=len(after - before) - transient)


def next_version(payload_list: PayloadList) -> int:
    """The version that the list will have after the write. The list must be locked."""
    return payload_list.version + 1


def supersede_lists(ids: Sequence[int]) -> None:
    """Store all rows of payload lists as superseded. The caller must delete them, and record a change of the lists."""
    if ids:
        with connection.cursor() as cursor:
            cursor.execute(STORE_LISTS, {"list_ids": list(ids)})


def needed_elsewhere(tag_id: int, list_ids: Sequence[int]) -> list[int]:
    """Those of the payload lists that were attached to another tag before, or whose rows other lists share or have shared."""
    members = PayloadListMembership.objects.filter(payload_list_id__in=list_ids).exclude(tag_id=tag_id)
    sharing = PayloadList.objects.filter(base_list_id__in=list_ids)
    shared = PayloadListVersion.objects.filter(base_list_id__in=list_ids)
    needed = {
        *members.values_list("payload_list_id", flat=True),
        *(
            list_id
            for users in (sharing, shared)
            for list_id in users.values_list("base_list_id", flat=True)
            if list_id
        ),
    }
    return sorted(needed)


def drop_history(tag_id: int) -> None:
    """Drop the history of a tag with all of its past: no revision of it can be asked for any more.

    The rows of its lists stay until they are pruned.
    """
    GlobalTagChange.objects.filter(tag_id=tag_id).update(has_history=False)
