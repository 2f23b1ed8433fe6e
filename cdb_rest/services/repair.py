"""Finding and repairing what breaks the rules of payload lists."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import starmap
from typing import NamedTuple

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.domain.moment import Mode, Moment
from cdb_rest.domain.origin import Origin
from cdb_rest.domain.repair import tidy
from cdb_rest.domain.status import Status
from cdb_rest.domain.timeline import TimelineRow
from cdb_rest.models import ChangeAction, GlobalTag, PayloadIOV, PayloadList
from cdb_rest.services.change_log import Changes
from cdb_rest.services.counts import LOCK_FOR_REPAIR, find_wrong_counts, repair_counts
from cdb_rest.services.intervals import interval_of
from cdb_rest.services.placing import settle_rows
from cdb_rest.services.transactions import write

INTERVAL_FAULTS = named_sql.load("interval_faults")
LAGGING_REVISIONS = named_sql.load("lagging_revisions")


@dataclass(frozen=True)
class Fault:
    """Something that should not be: which kind, in which tag and list (empty where it concerns none), and what exactly."""

    kind: str
    global_tag: str
    payload_list: str
    what: str
    list_id: int | None = None


class _IntervalFault(NamedTuple):
    """A row of interval_faults.sql."""

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
        where = f"payload IOV {self.iov_id} ({self.payload_url}), {interval}"
        return Fault(self.kind, self.global_tag, self.payload_list, where, self.list_id)


def find_faults(*, global_tag: str | None = None) -> list[Fault]:
    """All faults, or those of one tag; reads and sorts all attached IOVs. Raises `GlobalTagNotFoundError`."""
    if global_tag is not None and not GlobalTag.objects.filter(name=global_tag).exists():
        raise GlobalTagNotFoundError(global_tag)
    with connection.cursor() as cursor:
        cursor.execute(INTERVAL_FAULTS, {"tag": global_tag, "inclusive": settings.CDB_IOV_MODE == Mode.DISCRETE})
        faults = [found.fault() for found in starmap(_IntervalFault, cursor.fetchall())]
        cursor.execute(LAGGING_REVISIONS, {"tag": global_tag})
        faults += [
            Fault("revision lags", tag, "", f"{revision}, and {last} in the change log")
            for tag, revision, last in cursor.fetchall()
        ]
    return faults + _wrong_counts(global_tag)


@write
def repair_faults(*, global_tag: str | None = None, origin: Origin) -> list[Fault]:
    """Mend what is found, and return the faults that are left: those of frozen tags, but for their counts.

    What is valid at any moment stays; rows that go are detached. Writers wait meanwhile, readers do not.
    Raises `GlobalTagNotFoundError`.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK_FOR_REPAIR)
    faults = find_faults(global_tag=global_tag)
    changes = Changes()
    _tidy_lists({fault.list_id for fault in faults if fault.list_id is not None}, changes)
    lagging = [fault.global_tag for fault in faults if fault.kind == "revision lags"]
    # What a frozen tag answers is in caches that never ask again, the time of its last change included.
    unfrozen = GlobalTag.objects.filter(name__in=lagging).exclude(status__name=Status.FROZEN)
    for tag_id in unfrozen.values_list("id", flat=True):
        # A change, even of nothing, takes the revision past what the log has.
        changes.of_tag(tag_id)
    changes.record(ChangeAction.REPAIR, origin)
    repair_counts()
    return find_faults(global_tag=global_tag)


def _tidy_lists(ids: Collection[int], changes: Changes) -> None:
    for payload_list in PayloadList.objects.filter(id__in=ids).select_related("global_tag__status", "payload_type"):
        tag = payload_list.global_tag
        if tag is not None and tag.status.name == Status.FROZEN:
            continue
        iovs = PayloadIOV.objects.filter(payload_list=payload_list).order_by("comb_iov", "id")
        changed = tidy([TimelineRow(iov, interval_of(iov)) for iov in iovs])
        settle_rows(changed, {payload_list.id: payload_list}, changes)


def _wrong_counts(global_tag: str | None) -> list[Fault]:
    lists = dict(PayloadList.objects.filter(global_tag__isnull=False).values_list("name", "global_tag__name"))
    faults = []
    for wrong in find_wrong_counts():
        is_tag = wrong.kind == "global tag"
        tag = wrong.name if is_tag else lists.get(wrong.name, "")
        if global_tag in (None, tag):
            what = f"{wrong.count}: {wrong.kept:,} kept, {wrong.actual:,} there are"
            faults.append(Fault("wrong count", tag, "" if is_tag else wrong.name, what))
    return faults
