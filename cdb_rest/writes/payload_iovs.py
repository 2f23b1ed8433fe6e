"""Write services for single payload IOVs: create, attach, delete."""

import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cdb_rest.models import ChangeAction, ListedPayloadIOV, PayloadIOV, PayloadList
from cdb_rest.rules.access import BY_THE_SYSTEM, All, Origin, Role
from cdb_rest.rules.errors import (
    ConcurrentChangeError,
    PayloadIOVNotFoundError,
    PayloadIOVSharedError,
    PayloadListNotFoundError,
    quoted,
)
from cdb_rest.rules.moment import END_OF_TIME, Moment
from cdb_rest.rules.status import Action
from cdb_rest.rules.timeline import Cut, TimelineRow
from cdb_rest.writes import limits
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.locks import (
    check_list,
    check_list_role,
    check_owner,
    lock_payload_iov,
    lock_payload_list_of,
    lock_payload_lists,
)
from cdb_rest.writes.placing import Placement, Plan, remove_row
from cdb_rest.writes.rows import check_interval, interval_of
from cdb_rest.writes.sharing import is_shared, shares, unshare
from cdb_rest.writes.transactions import write


@write
def create_payload_iov(*, values: dict[str, Any], origin: Origin = BY_THE_SYSTEM) -> PayloadIOV:
    """Create a detached IOV from the values of columns of `PayloadIOV`.

    Raises `InvalidInputError` for an empty interval or a negative number, and the errors of missing permissions.
    """
    origin.principal.require(Role.CONTRIBUTOR)
    iov = PayloadIOV(**values, creator=origin.principal.identity or None)
    check_interval(iov)
    iov.save(force_insert=True)
    return _get(iov.id)


@dataclass(frozen=True)
class Attachment:
    """An attached IOV, and the cuts that it caused in other rows of its list.

    If the attachment `is_unchanged`, the list had the payload already, and `iov` is the row that has it.
    """

    iov: PayloadIOV | ListedPayloadIOV
    cuts: list[Cut[TimelineRow[PayloadIOV]]]
    is_unchanged: bool = False


@write
def attach_payload_iov(*, payload_list: str, iov_id: int, origin: Origin = BY_THE_SYSTEM) -> Attachment:
    """Attach an IOV to a list: its payload becomes valid in its whole interval, and nothing else changes.

    An open IOV detaches all later IOVs of the list, unlike in a bulk insert.

    If the IOV is in this list already, nothing changes. Nor does it if the same payload is valid in the whole interval: then the
    IOV stays where it is. An IOV of another list is moved; then the status of that list's tag must permit the removal, too, and
    no other list may share it.

    Raises `PayloadListNotFoundError`, `PayloadIOVNotFoundError`, `InvalidInputError` for an empty interval,
    `OverlapError` if existing intervals of a protected tag would change, `TagLockedError`, `TagFrozenError`,
    `PayloadIOVSharedError`, `ConcurrentChangeError` if another request attached the IOV or its list elsewhere at the same moment,
    and those of missing permissions.
    """
    iov, source, target = _lock_for_attachment(iov_id, payload_list)
    if source == target or shares(target, iov):
        check_list_role(target, Action.ADD_IOV, origin)
        return Attachment(_get(iov_id), [], is_unchanged=True)
    if source:
        check_list_role(source, Action.REMOVE_IOV, origin)
    check_list_role(target, Action.ADD_IOV, origin)
    if not source:
        check_owner(iov, Role.MANAGER, origin, target.payload_type.name)
    check_interval(iov)
    stored = copy.copy(iov)
    placement = Placement(iov, target)
    plan = Plan([placement])
    if placement.holder is not None:
        # If the list shares rows, the stored row may have another list, or be in the history alone.
        listed = ListedPayloadIOV.objects.select_related("payload_list")
        return Attachment(listed.get(payload_list=target, id=placement.holder.iov.id), [], is_unchanged=True)
    changes = Changes()
    if source:
        _remove_for_move(source, stored, origin, changes)
    for _, refusal in plan.refusals:
        raise refusal
    plan.apply(changes)
    attachment = Attachment(_get(iov_id), placement.cuts)
    changes.record(ChangeAction.ATTACH_IOV, origin)
    return attachment


def _lock_for_attachment(iov_id: int, payload_list: str) -> tuple[PayloadIOV, PayloadList | None, PayloadList]:
    """Lock an IOV, the list that has it (None if it is detached), and the list to attach it to. Returns them in this order.

    Raises `PayloadIOVNotFoundError`, `PayloadListNotFoundError` or `ConcurrentChangeError`.
    """
    current = PayloadIOV.objects.filter(id=iov_id).values_list("payload_list__name", flat=True)
    if not current:
        raise PayloadIOVNotFoundError(iov_id)
    lists = lock_payload_lists({payload_list, *current} - {None})
    if payload_list not in lists:
        raise PayloadListNotFoundError(payload_list)
    iov = lock_payload_iov(iov_id)
    source = next((item for item in lists.values() if item.id == iov.payload_list_id), None)
    if iov.payload_list_id is not None and source is None:
        raise ConcurrentChangeError(f"Payload IOV {iov_id} was attached elsewhere at the same moment; try again.")
    return iov, source, lists[payload_list]


def _remove_for_move(source: PayloadList, iov: PayloadIOV, origin: Origin, changes: Changes) -> None:
    """Note in `changes` that an IOV leaves its list for another one.

    Raises `PayloadIOVSharedError`, `TagLimitError`, or the errors of `check_list`.
    """
    if is_shared(iov):
        raise PayloadIOVSharedError(
            f"Payload IOV {iov.id} is in payload list {source.name}, whose rows clones share, so it cannot be moved; "
            "create a new one with the same payload."
        )
    check_list(source, Action.REMOVE_IOV, origin)
    limits.check_closed(source.global_tag, interval_of(iov).start)
    remove_row(source, iov, changes)


@write
def delete_payload_iov(
    *, global_tag: str, payload_type: str, start: Moment, end: Moment = END_OF_TIME, origin: Origin = BY_THE_SYSTEM
) -> None:
    """Delete the IOV of a tag and payload type with exactly this start and end, in the wire format.

    Afterwards, the IOV before it, if open, is valid up to the next start, because the deleted IOV no longer hides it.

    Raises `PayloadListNotFoundError` (also if there is no such tag or type), `PayloadIOVNotFoundError`,
    `TagLockedError`, `TagFrozenError`, `ConcurrentChangeError`, or those of missing permissions.
    """
    found = lock_payload_list_of(global_tag, payload_type)
    check_list(found, Action.REMOVE_IOV, origin)
    unshare([found])
    iov = PayloadIOV.objects.filter(
        payload_list=found,
        comb_iov=start.combined,
        major_iov_end=end.major,
        minor_iov_end=end.minor,
    ).first()
    if iov is None:
        until = "an open end" if end == END_OF_TIME else end
        raise PayloadIOVNotFoundError(described=f"from exactly {start} to {until} in payload list {quoted(found.name)}")
    limits.check_closed(found.global_tag, start)
    changes = Changes()
    remove_row(found, iov, changes)
    iov.delete()
    changes.record(ChangeAction.DELETE_IOV, origin)


@write
def delete_detached_iovs(*, before: datetime, origin: Origin = BY_THE_SYSTEM) -> int:
    """Delete the IOVs that are in no payload list and were last changed before a time. Returns their number.

    Raises the errors of missing permissions.
    """
    origin.principal.require(Role.MANAGER, All.ALL, All.ALL)
    count, _ = PayloadIOV.objects.filter(payload_list=None, updated__lt=before).delete()
    return count


def _get(iov_id: int) -> PayloadIOV:
    """The current row of the IOV, with its list."""
    return PayloadIOV.objects.select_related("payload_list").get(id=iov_id)
