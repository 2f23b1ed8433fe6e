"""Check and repair of the rules of payload lists, of revisions and of counts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import NamedTuple, TypeVar

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.models import ChangeAction, GlobalTag, PayloadIOV, PayloadList
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import GlobalTagNotFoundError
from cdb_rest.rules.moment import Interval, Mode, Moment
from cdb_rest.rules.status import Status
from cdb_rest.rules.timeline import TimelineRow
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.placing import save_rows
from cdb_rest.writes.rows import interval_of
from cdb_rest.writes.sharing import unshare
from cdb_rest.writes.transactions import write

INCORRECT_COUNTS = named_sql.load("incorrect_counts")
REPAIR_LIST_COUNTS = named_sql.load("repair_list_counts")
REPAIR_TAG_COUNTS = named_sql.load("repair_tag_counts")
APPLY_DEFERRED_COUNTS = named_sql.load("apply_deferred_counts")
TOUCH = named_sql.load("touch_global_tags")
LOCK_FOR_REPAIR = named_sql.load("lock_for_repair")


@dataclass(frozen=True)
class IncorrectCount:
    """A stored count that differs from the number of rows.

    `kind` ("global tag" or "payload list") and `name` identify the object; `count` is "payload lists" or "IOVs".
    """

    kind: str
    name: str
    count: str
    stored: int
    actual: int


def find_incorrect_counts() -> list[IncorrectCount]:
    """All incorrect counts, from one snapshot of the database. Reads the index entry of every IOV."""
    with connection.cursor() as cursor:
        cursor.execute(INCORRECT_COUNTS)
        return [IncorrectCount(*row) for row in cursor.fetchall()]


@write
def repair_counts() -> list[IncorrectCount]:
    """Correct all incorrect counts and return them as they were. Writers wait meanwhile, readers do not.

    If a count was incorrect, `last_modified` of all global tags is raised, so that HTTP caches revalidate. Revisions
    and change logs do not change.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK_FOR_REPAIR)
        found = find_incorrect_counts()
        lists = {item.name: item.actual for item in found if item.kind == "payload list"}
        cursor.execute(REPAIR_LIST_COUNTS, {"names": list(lists), "counts": list(lists.values())})
        cursor.execute(APPLY_DEFERRED_COUNTS)
        cursor.execute(REPAIR_TAG_COUNTS)
        if found:
            cursor.execute(TOUCH)
    return found


IOV = TypeVar("IOV")


def repair_rows(rows: Sequence[TimelineRow[IOV]]) -> bool:
    """Detach and trim rows so that none is empty, and no closed row overlaps the next one. Returns whether any row changed.

    `rows` must be all rows of a list, ordered by start. They are changed in place: of detached ones, `attached` is false. An
    empty row hid the row before it, so that row ends at its start.
    """
    changed = False
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        start, end = row.interval.start, row.interval.end
        if row.interval.is_empty:
            row.attached = False
        elif following is None or end <= following.interval.start:
            continue
        elif following.interval.is_empty or not row.interval.is_open:
            row.interval = Interval(start, following.interval.start)
        else:
            continue
        changed = True
    return changed


INTERVAL_FAULTS = named_sql.load("interval_faults")
LAGGING_REVISIONS = named_sql.load("lagging_revisions")


@dataclass(frozen=True)
class Fault:
    """A violation of the rules: its kind, the names of its tag and payload list (empty without one), a description.

    `list_id` is the id of the list if the fault is in its rows, otherwise None.
    """

    kind: str
    global_tag: str
    payload_list: str
    description: str
    list_id: int | None = None


class _IntervalFault(NamedTuple):
    """A row of interval_faults."""

    kind: str
    global_tag: str
    payload_list: str
    list_id: int
    iov_id: int
    payload_url: str
    major_iov: int
    minor_iov: int
    major_iov_end: int
    minor_iov_end: int

    def fault(self) -> Fault:
        interval = f"{Moment(self.major_iov, self.minor_iov)} to {Moment(self.major_iov_end, self.minor_iov_end)}"
        iov = f"payload IOV {self.iov_id} ({self.payload_url}), {interval}"
        return Fault(self.kind, self.global_tag, self.payload_list, iov, self.list_id)


def find_faults(*, global_tag: str | None = None) -> list[Fault]:
    """All faults, also those of detached lists, or the faults of one tag. Raises `GlobalTagNotFoundError`.

    Reads all IOVs of all lists, or of the tag's lists; those that lists share once. The counts of all tags and lists are
    always computed.
    """
    if global_tag is not None and not GlobalTag.objects.filter(name=global_tag).exists():
        raise GlobalTagNotFoundError(global_tag)
    with connection.cursor() as cursor:
        cursor.execute(INTERVAL_FAULTS, {"tag": global_tag, "inclusive": settings.CDB_IOV_MODE == Mode.DISCRETE})
        faults = [found.fault() for found in starmap(_IntervalFault, cursor.fetchall())]
        cursor.execute(LAGGING_REVISIONS, {"tag": global_tag})
        faults += [
            Fault("revision lags", tag, "", f"revision {revision}, but {last} in the change log")
            for tag, revision, last in cursor.fetchall()
        ]
    return faults + _incorrect_counts(global_tag)


@write
def repair_faults(*, global_tag: str | None = None, origin: Origin) -> list[Fault]:
    """Repair all faults, or the faults of one tag, and return the remaining ones.

    The rows and the revisions of frozen tags are not changed, so their faults remain; their counts are repaired. Counts
    are repaired in all tags and lists, even if `global_tag` is given; see `repair_counts`.

    The payload that is valid at any moment does not change. Rows are detached, not deleted. Lists that share rows get copies
    of them before, so that their base and other lists that share it stay as they are. Each tag whose rows or
    revision are repaired gets a new revision. Writers wait meanwhile, readers do not. Raises `GlobalTagNotFoundError`.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK_FOR_REPAIR)
    faults = find_faults(global_tag=global_tag)
    changes = Changes()
    _repair_lists({fault.list_id for fault in faults if fault.list_id is not None}, changes)
    lagging = [fault.global_tag for fault in faults if fault.kind == "revision lags"]
    # Caches keep responses about frozen tags, which include the time of the last change, without revalidation.
    unfrozen = GlobalTag.objects.filter(name__in=lagging).exclude(status__name=Status.FROZEN)
    for tag_id in unfrozen.values_list("id", flat=True):
        # Even an empty change raises the revision above the last one in the log.
        changes.of_tag(tag_id)
    changes.record(ChangeAction.REPAIR, origin)
    repair_counts()
    return find_faults(global_tag=global_tag)


def _repair_lists(ids: Collection[int], changes: Changes) -> None:
    lists = PayloadList.objects.filter(id__in=ids).order_by("id")
    for payload_list in lists.select_related("global_tag__status", "payload_type"):
        tag = payload_list.global_tag
        if tag is not None and tag.status.name == Status.FROZEN:
            continue
        # What its base has meanwhile does not count: the list keeps what it shares, but for its faults.
        unshare([payload_list])
        iovs = PayloadIOV.objects.filter(payload_list=payload_list).order_by("comb_iov", "id")
        rows = [TimelineRow(iov, interval_of(iov)) for iov in iovs]
        if repair_rows(rows):
            save_rows(payload_list, rows, changes)


def _incorrect_counts(global_tag: str | None) -> list[Fault]:
    lists = dict(PayloadList.objects.filter(global_tag__isnull=False).values_list("name", "global_tag__name"))
    faults = []
    for found in find_incorrect_counts():
        is_tag = found.kind == "global tag"
        tag = found.name if is_tag else lists.get(found.name, "")
        if global_tag in (None, tag):
            description = f"{found.count}: {found.stored:,} stored, {found.actual:,} actual"
            faults.append(Fault("incorrect count", tag, "" if is_tag else found.name, description))
    return faults
