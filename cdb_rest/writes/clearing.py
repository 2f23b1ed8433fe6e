"""Write service that makes no payload of a type valid in an interval."""

from dataclasses import dataclass

from cdb_rest.models import ChangeAction, GlobalTag, PayloadIOV
from cdb_rest.rules.access import BY_THE_SYSTEM, Origin
from cdb_rest.rules.errors import GlobalTagNotFoundError
from cdb_rest.rules.moment import Interval
from cdb_rest.rules.status import Action
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.locks import check_list_role, lock_payload_list_of
from cdb_rest.writes.placing import Placement, Plan
from cdb_rest.writes.rows import check_interval, set_interval
from cdb_rest.writes.transactions import write


@dataclass(frozen=True)
class Clearing:
    """A clearing. The placement has the cuts of existing rows, none if no payload was valid; its IOV is not stored.

    `revision` is the new one of the tag, None if nothing changed.
    """

    placement: Placement
    revision: int | None


@write
def clear_interval(
    *, global_tag: str, payload_type: str, interval: Interval, origin: Origin = BY_THE_SYSTEM
) -> Clearing:
    """Cut the IOVs of a tag and payload type so that no payload is valid in an interval; nothing else changes.

    If none is valid in it, nothing changes.

    Raises `GlobalTagNotFoundError`, `PayloadListNotFoundError`, `InvalidInputError` for an empty interval, `TagLockedError`,
    `TagFrozenError`, `TagLimitError`, `ConcurrentChangeError`, or the errors of missing permissions.
    """
    if not GlobalTag.objects.filter(name=global_tag).exists():
        raise GlobalTagNotFoundError(global_tag)
    found = lock_payload_list_of(global_tag, payload_type)
    check_list_role(found, Action.REMOVE_IOV, origin)
    # The interval as that of an IOV that is not stored.
    iov = PayloadIOV()
    set_interval(iov, interval)
    check_interval(iov)
    placement = Placement(iov, found)
    plan = Plan([placement], clearing=True)
    for _, refusal in plan.refusals:
        raise refusal
    if plan.changes_nothing:
        return Clearing(placement, None)
    changes = Changes()
    plan.apply(changes)
    return Clearing(placement, changes.record(ChangeAction.CLEAR, origin)[global_tag])
