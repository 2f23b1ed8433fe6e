"""The limits of global tags for writes: `closed_until`, `largest_major` and `accepts_requests`."""

from typing import Any

from django.db.models import Max

from cdb_rest.models import ChangeAction, GlobalTag, ListedPayloadIOV
from cdb_rest.rules.access import BY_THE_SYSTEM, All, Origin, Role
from cdb_rest.rules.errors import TagLimitError
from cdb_rest.rules.moment import AFTER_ALL, Interval, Moment
from cdb_rest.rules.status import Action, Status, check_permitted
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.locks import lock_global_tag
from cdb_rest.writes.transactions import write


@write
def set_limits(*, name: str, origin: Origin = BY_THE_SYSTEM, **limits: Any) -> GlobalTag:
    """Set limits of a tag: `closed_until`, a moment, and `largest_major`, None for no limit; and `accepts_requests`.

    With `accepts_requests`, an accepted request may change the tag while it is locked. Limits that are not given stay. If none
    differs, nothing changes.

    To lower or remove `closed_until` needs the role administrator, and the tag must be unlocked: otherwise `TagLockedError`.
    Raises `GlobalTagNotFoundError`, `TagFrozenError`, or the errors of missing permissions.
    """
    origin.principal.require(Role.MANAGER, name, All.ALL)
    tag = lock_global_tag(name)
    before = {"closed_until": tag.closed, "largest_major": tag.largest_major, "accepts_requests": tag.accepts_requests}
    after = before | limits
    if after == before:
        return tag
    closed = after["closed_until"]
    check_permitted(tag=name, status=tag.status.name, action=Action.SET_LIMITS)
    if tag.closed is not None and (closed is None or closed < tag.closed):
        origin.principal.require(Role.ADMINISTRATOR, name, All.ALL)
        if tag.status.name != Status.UNLOCKED:
            check_permitted(tag=name, status=tag.status.name, action=Action.REOPEN)
    tag.closed_until = None if closed is None else closed.combined
    tag.largest_major, tag.accepts_requests = after["largest_major"], after["accepts_requests"]
    tag.save(update_fields=[*after])
    changes = Changes()
    changes.of_tag(tag.id).source = {"limits": limits_document(tag)}
    changes.record(ChangeAction.LIMITS, origin)
    return GlobalTag.objects.select_related("status").get(id=tag.id)


def limits_document(tag: GlobalTag) -> dict[str, Any]:
    """The limits of a tag as the members of JSON documents."""
    return {
        "closed_until": None if tag.closed is None else list(tag.closed),
        "largest_major": tag.largest_major,
        "accepts_requests": tag.accepts_requests,
    }


def check_closed(tag: GlobalTag | None, since: Moment) -> None:
    """Raise `TagLimitError` if a change of what is valid at `since` or later is a change before `closed_until` of the tag."""
    if tag is not None and tag.closed is not None and since < tag.closed:
        raise TagLimitError(
            f"Global tag {tag.name} is closed until {tag.closed}: what is valid before cannot be changed (from {since})."
        )


def check_largest(tag: GlobalTag, interval: Interval) -> None:
    """Raise `TagLimitError` if an interval starts after `largest_major` of the tag, or ends later than this major number.

    It may be open.
    """
    largest = tag.largest_major
    if largest is None:
        return
    if interval.start.major > largest:
        raise TagLimitError(
            f"The start {interval.start} is after the largest major number of global tag {tag.name}, {largest}."
        )
    if Moment(largest + 1, 0) < interval.end < AFTER_ALL:
        raise TagLimitError(
            f"The end {interval.end} is after the largest major number of global tag {tag.name}, {largest}; it may be open."
        )


def check_list(tag: GlobalTag, list_id: int) -> None:
    """Raise `TagLimitError` if a payload list that comes into a tag, or leaves it, has IOVs beyond the limits of the tag."""
    rows = ListedPayloadIOV.objects.filter(payload_list=list_id)
    first = rows.order_by("comb_iov").first() if tag.closed is not None else None
    if first is not None:
        check_closed(tag, Moment(first.major_iov, first.minor_iov))
    if tag.largest_major is not None:
        last = rows.aggregate(last=Max("major_iov"))["last"]
        if last is not None:
            check_largest(tag, Interval(Moment(last, 0), AFTER_ALL))
