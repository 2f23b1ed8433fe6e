"""Check of the history: whether the stored past fits together, and with the present.

Only what revisions with history need is compared with what was recorded, because the rest may have been pruned.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadList, PayloadListMembership, PayloadListVersion
from cdb_rest.rules.errors import GlobalTagNotFoundError

ROW_FAULTS = named_sql.load("history_row_faults")
VERSION_FAULTS = named_sql.load("history_version_faults")
NUMBER_FAULTS = named_sql.load("history_number_faults")
MEMBERSHIP_FAULTS = named_sql.load("membership_faults")
NEWEST_CHANGE_FAULTS = named_sql.load("newest_change_faults")
NEEDED = named_sql.load("needed_versions")
LISTS = named_sql.load("lists_with_history")

# Kinds of faults in the rows of a list, as opposed to memberships and the change log.
OF_ROWS = frozenset({"two versions", "number of IOVs", "areas", "version", "base"})
# So many lists are checked by one statement of each kind; of lists that have no rows of their own, now or in the past, many more.
BATCH_LISTS, BATCH_LISTS_WITHOUT_ROWS = 50, 2000

# Called with the numbers of lists that are checked, and of all of them.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class HistoryFault:
    """A fault of the history: its kind, the names of its tag and payload list (empty without one), a description.

    `tag_id` and `list_id` are the ids that the fault is about, or None. The tag or the list may not exist any more. A fault in
    the rows of a list has no `tag_id`; then `global_tag` is the tag that the list is attached to.
    """

    kind: str
    global_tag: str
    payload_list: str
    description: str
    tag_id: int | None
    list_id: int | None


def find_history_faults(
    *, global_tag: str | None = None, also: Collection[int] = (), progress: Progress = lambda done, total: None
) -> list[HistoryFault]:
    """All faults, or those of one tag and of the lists that it has or had, and of their bases; the tag may be deleted.

    `also` are ids of lists that are checked as well.

    Reads all rows of the lists, present and past. It reads several times, so the caller must be in a snapshot, or have
    locked the tables. Raises `GlobalTagNotFoundError` for a name that neither a tag nor the change log has.
    """
    lists = {*_lists(global_tag), *also}
    with_rows = _ids(PayloadList.objects.filter(base_list_id__isnull=True), "id")
    with_rows |= {list_id for list_id, has_areas in _fetch(LISTS, {}) if has_areas}
    found: list[tuple[str, int | None, int | None, str]] = []
    done = 0
    for part, size in ((lists & with_rows, BATCH_LISTS), (lists - with_rows, BATCH_LISTS_WITHOUT_ROWS)):
        for begin in range(0, len(part), size):
            batch = sorted(part)[begin : begin + size]
            found += _check(batch)
            done += len(batch)
            progress(done, len(lists))
    found += _fetch(NEWEST_CHANGE_FAULTS, {"tag": global_tag})
    return _named(found)


def _lists(global_tag: str | None) -> set[int]:
    """The ids of the lists to check. Those of bases may be of lists that do not exist any more."""
    lists, members, versions = PayloadList.objects, PayloadListMembership.objects, PayloadListVersion.objects
    shared = versions.filter(base_list_id__isnull=False)
    if global_tag is None:
        return _ids(lists, "id") | _ids(members, "payload_list_id") | _ids(shared, "base_list_id")
    tags = _ids(GlobalTag.objects.filter(name=global_tag), "id")
    tags |= _ids(GlobalTagChange.objects.filter(global_tag=global_tag), "tag_id")
    if not tags:
        raise GlobalTagNotFoundError(global_tag)
    tags.discard(None)
    found = _ids(lists.filter(global_tag_id__in=tags), "id")
    found |= _ids(members.filter(tag_id__in=tags), "payload_list_id")
    return found | _ids(shared.filter(payload_list_id__in=found), "base_list_id")


def _ids(rows: Any, column: str) -> set[Any]:
    return set(rows.values_list(column, flat=True).distinct())


def _check(lists: Sequence[int]) -> list[tuple[Any, ...]]:
    needed = _fetch(NEEDED, {"list_ids": lists})
    values = {"list_ids": [row[0] for row in needed], "versions": [row[1] for row in needed]}
    return [
        row
        for statement in (ROW_FAULTS, NUMBER_FAULTS, VERSION_FAULTS, MEMBERSHIP_FAULTS)
        for row in _fetch(statement, values)
    ]


def _named(found: Sequence[tuple[str, int | None, int | None, str]]) -> list[HistoryFault]:
    """The faults with names. Of something that does not exist any more, the history has the name, or it is the id."""
    list_ids = {list_id for _, _, list_id, _ in found if list_id is not None}
    former = PayloadListMembership.objects.filter(payload_list_id__in=list_ids).order_by("id")
    lists = dict(former.values_list("payload_list_id", "name"))
    tag_of: dict[Any, Any] = dict(former.values_list("payload_list_id", "tag_id"))
    lists |= dict(PayloadList.objects.filter(id__in=list_ids).values_list("id", "name"))
    tag_of |= dict(PayloadList.objects.filter(id__in=list_ids).values_list("id", "global_tag_id"))
    tag_ids = {tag_id for _, tag_id, _, _ in found} | set(tag_of.values())
    tags = dict(GlobalTagChange.objects.filter(tag_id__in=tag_ids).values_list("tag_id", "global_tag").distinct())
    tags |= dict(GlobalTag.objects.filter(id__in=tag_ids).values_list("id", "name"))

    def name(names: dict[Any, str], one: Any) -> str:
        return "" if one is None else names.get(one, f"id {one}")

    return [
        HistoryFault(
            kind,
            name(tags, tag_id or tag_of.get(list_id)),
            name(lists, list_id),
            description,
            tag_id,
            list_id,
        )
        for kind, tag_id, list_id, description in found
    ]


def _fetch(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
