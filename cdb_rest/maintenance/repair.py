"""Check and repair of the rules of payload lists, of revisions and of counts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, starmap
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
        cursor.execute(REPAIR_LIST_COUNTS)
        cursor.execute(APPLY_DEFERRED_COUNTS)
        cursor.execute(REPAIR_TAG_COUNTS)
        if found:
            cursor.execute(TOUCH)
    return found


IOV = TypeVar("IOV")


def repair_rows(rows: Sequence[TimelineRow[IOV]]) -> list[TimelineRow[IOV]]:
    """Detach and trim rows so that none is empty, no two have the same start, and no closed row overlaps the next one.

    `rows` must be all rows of a list, ordered by start. Among rows with the same start, the last one that is not empty is
    kept. If a start has only empty rows, they hid the row before, so that row is trimmed to this start.

    The rows are changed in place. Returns the rows that changed, detached ones with `attached` false.
    """
    changed: dict[int, TimelineRow[IOV]] = {}
    kept_rows: list[tuple[Moment, TimelineRow[IOV] | None]] = []
    for start, group in groupby(rows, key=lambda row: row.interval.start):
        candidates = list(group)
        kept = next((row for row in reversed(candidates) if not row.interval.is_empty), None)
        kept_rows.append((start, kept))
        for row in candidates:
            if row is not kept:
                row.attached = False
                changed[id(row)] = row
    for (start, kept), (until, following) in pairwise(kept_rows):
        hidden_by_empty = following is None
        if kept is not None and kept.interval.end > until and (hidden_by_empty or not kept.interval.is_open):
            kept.interval = Interval(start, until)
            changed[id(kept)] = kept
    return list(changed.values())


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

    Reads and sorts all IOVs of all lists, or of the tag's lists. The counts of all tags and lists are always computed.
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

    The payload that is valid at any moment does not change. Rows are detached, not deleted. Each tag whose rows or
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
    for payload_list in PayloadList.objects.filter(id__in=ids).select_related("global_tag__status", "payload_type"):
        tag = payload_list.global_tag
        if tag is not None and tag.status.name == Status.FROZEN:
            continue
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
