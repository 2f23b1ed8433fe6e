"""Conversion of the change log's earlier format into the history of rows, so that earlier revisions can be asked for.

Before there was a history of rows, a change was logged as two documents. `cdb_rest.domain.logged_changes` reads them
backwards from the state after the newest of them, as far as they do not contradict each other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from django.db import connection
from django.db.models import Q

from cdb_rest import named_sql
from cdb_rest.domain.errors import ConcurrentChangeError, GlobalTagNotFoundError
from cdb_rest.domain.logged_changes import LoggedChange, Stay, Trace, trace
from cdb_rest.history.contents import past_counts
from cdb_rest.history.revisions import Past
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadList, PayloadListMembership
from cdb_rest.services import logged_rows
from cdb_rest.services.locks import lock_global_tags
from cdb_rest.services.logged_rows import ListStay, Progress
from cdb_rest.services.past_stays import PastStay, store_stay
from cdb_rest.services.transactions import write

FIRST_VERSION = named_sql.load("convert_first_version")
VERSION_AT = named_sql.load("convert_version_at")
NEXT_LIST_ID = named_sql.load("convert_next_list_id")
FINISH = named_sql.load("convert_finish")

# An id in the name of a list.
DIGITS = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion did: changes that were converted, and areas of rows that were stored.

    The tag can be asked for from revision `first_revision` on. If it has earlier ones, `reason` says why these cannot.
    """

    global_tag: str
    first_revision: int
    changes: int
    areas: int
    reason: str


def find_unconverted(*, global_tag: str | None = None) -> list[tuple[int, str, int]]:
    """The tags with logged changes that can be converted, or that tag: id, name, and the number of logged changes.

    Raises `GlobalTagNotFoundError` if there are no changes with the name, and no such tag.
    """
    changes = GlobalTagChange.objects.all()
    if global_tag is not None:
        changes = changes.filter(global_tag=global_tag)
        if not changes.exists() and not GlobalTag.objects.filter(name=global_tag).exists():
            raise GlobalTagNotFoundError(global_tag)
    newest = changes.filter(_LOGGED, has_history=True).order_by("global_tag", "revision")
    return [
        (tag_id, name, GlobalTagChange.objects.filter(_LOGGED, global_tag=name, revision__lte=revision).count())
        for tag_id, name, revision in newest.values_list("tag_id", "global_tag", "revision")
        if tag_id is not None
    ]


def count_logged() -> int:
    """The number of changes that cannot be asked for, because they are stored as documents."""
    return GlobalTagChange.objects.filter(_LOGGED, has_history=False).count()


_LOGGED = Q(logged_before__isnull=False, logged_after__isnull=False)


@write
def convert_history(*, tag_id: int, batch: int, progress: Progress) -> Conversion:
    """Convert the logged changes of a tag, all or none. It may be called again, and then continues where it stopped.

    The documents are read `batch` changes at a time; `progress` is called with the number of changes after each batch. Then
    the tag and its lists are locked until the end: other writers of the tag wait, readers do not. Raises
    `ConcurrentChangeError` if another process converted the tag meanwhile.
    """
    newest = _newest(tag_id)
    lists = _members(tag_id, newest.number)
    traced = trace(
        logged_rows.read_changes(newest.global_tag, newest.revision),
        newest.status,
        {name: payload_type for name, payload_type, _ in lists},
    )
    if not traced.changes:
        return Conversion(newest.global_tag, newest.revision, 0, 0, _reason(traced))
    stays = _with_lists(traced.stays, {name: list_id for name, _, list_id in lists})
    changes = [change for change, _ in traced.changes]
    logged_rows.load(newest.global_tag, changes, stays, batch, progress)
    mismatch = logged_rows.find_mismatch(newest.number)
    read = [*takewhile(lambda one: mismatch is None or one[0].number > mismatch.number, traced.changes)]
    reason = _reason(traced)
    if len(read) < len(changes):
        reason = f"change {changes[len(read)].revision} contradicts later ones: {mismatch}"
    if not read:
        return Conversion(newest.global_tag, newest.revision, 0, 0, reason)
    _lock(newest, stays)
    first = read[-1][0]
    areas = _store(newest, first, stays)
    is_complete = traced.is_complete and len(read) == len(changes)
    return Conversion(newest.global_tag, first.revision, _finish(newest, read, is_complete), areas, reason)


def _newest(tag_id: int) -> GlobalTagChange:
    """The newest logged change of a tag that is not converted."""
    found = GlobalTagChange.objects.filter(_LOGGED, tag_id=tag_id, has_history=True)
    newest = found.defer("logged_before", "logged_after").order_by("-revision").first()
    if newest is None:
        raise ConcurrentChangeError(f"The history of the global tag {tag_id} was converted at the same moment.")
    return newest


def _members(tag_id: int, number: int) -> list[tuple[str, str, int]]:
    """The payload lists of the tag after a change: name, payload type, id."""
    members = PayloadListMembership.objects.filter(_at(number), tag_id=tag_id).order_by("payload_list_id")
    return list(members.values_list("name", "payload_type", "payload_list_id"))


def _at(number: int) -> Q:
    return Q(added_in__lte=number) & (Q(removed_in__isnull=True) | Q(removed_in__gt=number))


def _with_lists(stays: Sequence[Stay], members: dict[str, int]) -> list[ListStay]:
    """The stays with the ids of their lists: those of the tag, others that exist, or that are in the past of a tag."""
    names = {stay.name for stay in stays}
    ids = dict(PayloadListMembership.objects.filter(name__in=names).values_list("name", "payload_list_id"))
    ids |= dict(PayloadList.objects.filter(name__in=names).values_list("name", "id"))
    ids |= members
    return [ListStay(number, stay, ids.get(stay.name)) for number, stay in enumerate(stays)]


def _reason(traced: Trace) -> str:
    if traced.contradicting is not None:
        return f"change {traced.contradicting.revision} contradicts later ones: {traced.contradiction}"
    return "" if traced.is_complete else "the log does not have earlier changes"


def _lock(newest: GlobalTagChange, stays: Sequence[ListStay]) -> None:
    """Lock the tag and the lists. Raises `ConcurrentChangeError` if another process has converted the tag."""
    tag_id = newest.tag_id
    if tag_id is None:
        raise AssertionError("the change has no tag")
    lock_global_tags({tag_id})
    ids = {one.list_id for one in stays if one.list_id is not None}
    list(PayloadList.objects.filter(id__in=ids).order_by("id").select_for_update(no_key=True).values_list("id"))
    if _newest(tag_id).id != newest.id:
        raise ConcurrentChangeError(f"The history of global tag {newest.global_tag} was converted at the same moment.")


def _store(newest: GlobalTagChange, first: LoggedChange, stays: Sequence[ListStay]) -> int:
    """Store the past of the lists since the change `first`. Returns the number of areas."""
    created = GlobalTagChange.objects.values_list("created", flat=True).get(id=first.id)
    versions = logged_rows.count_versions(first.number)
    areas = 0
    new_ids: dict[str, int] = {}
    for one in stays:
        stay = one.stay
        since = max(stay.first or 0, first.number)
        if stay.last is not None and stay.last <= first.number:
            continue
        list_id = one.list_id or new_ids.get(stay.name) or _id_of_deleted_list(stay)
        new_ids[stay.name] = list_id
        version = _scalar(VERSION_AT, {"list_id": list_id, "number": newest.number})
        past = PastStay(one.number, list_id, since, stay.last, versions[one.number], version, created)
        if stay.last is None and not past.versions:
            with connection.cursor() as cursor:
                cursor.execute(FIRST_VERSION, {"list_id": list_id, "since": since, "number": newest.number})
        else:
            areas += store_stay(past)
        _store_membership(newest, stay, past)
    return areas


def _id_of_deleted_list(stay: Stay) -> int:
    """The id of a list that does not exist any more: the one in its name if the list had that, else a new one."""
    new_id = _scalar(NEXT_LIST_ID, {})
    number = stay.name.removeprefix(f"{stay.payload_type}_")
    list_id = int(number) if DIGITS.fullmatch(number) else new_id
    is_used = (
        PayloadList.objects.filter(id=list_id).exists()
        or PayloadListMembership.objects.filter(payload_list_id=list_id).exists()
    )
    return new_id if is_used or list_id > new_id else list_id


def _store_membership(newest: GlobalTagChange, stay: Stay, past: PastStay) -> None:
    values = {"tag_id": newest.tag_id, "payload_list_id": past.list_id}
    if stay.last is None:
        PayloadListMembership.objects.filter(_at(newest.number), **values).update(added_in=past.first)
        return
    created = PayloadList.objects.filter(id=past.list_id).values_list("created", flat=True).first()
    PayloadListMembership.objects.create(
        **values,
        name=stay.name,
        payload_type=stay.payload_type,
        created=created or past.created,
        added_in=past.first,
        removed_in=stay.last,
    )


def _finish(newest: GlobalTagChange, read: Sequence[tuple[LoggedChange, str]], is_complete: bool) -> int:
    """Mark the changes as converted. Returns how many of them had no history before."""
    first = read[-1][0]
    values = {
        "tag_id": newest.tag_id,
        "ids": [change.id for change, _ in read],
        "statuses": [status for _, status in read],
        "keep": None if is_complete else first.id,
    }
    with connection.cursor() as cursor:
        cursor.execute(FINISH, values)
    if is_complete and first.is_copy and newest.tag_id is not None:
        past = Past(newest.global_tag, newest.tag_id, first.revision, first.number, newest.created, read[-1][1])
        GlobalTagChange.objects.filter(id=first.id).update(payload_iovs_after=past_counts(past)[1])
    return len(read) - 1


def _scalar(statement: str, values: dict[str, int]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        [(value,)] = cursor.fetchall()
    return int(value)
