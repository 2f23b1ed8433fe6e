"""Creating, attaching and deleting single payload IOVs."""

from typing import Any

from django.conf import settings
from django.db.models.functions import Now

from cdb_rest.domain.attach import PlacedIOV, check_free
from cdb_rest.domain.errors import (
    ConcurrentChangeError,
    InvalidInputError,
    PayloadIOVNotFoundError,
    PayloadListNotFoundError,
)
from cdb_rest.domain.moment import END_OF_TIME, Interval, Mode, Moment
from cdb_rest.domain.status import Action
from cdb_rest.models import PayloadIOV, PayloadList
from cdb_rest.services.locks import check_tag, claim_counts, lock_payload_iov, lock_payload_lists
from cdb_rest.services.transactions import write


@write
def create_payload_iov(**values: Any) -> PayloadIOV:
    """Create a detached IOV from the columns of `PayloadIOV`. Raises `InvalidInputError` for an empty interval."""
    iov = PayloadIOV(**values)
    check_interval(iov)
    iov.save(force_insert=True)
    return iov


@write
def attach_payload_iov(*, payload_list: str, iov_id: int) -> PayloadIOV:
    """Attach an IOV to a list, where its interval must be free; attaching it again to its own list changes nothing.

    Raises `PayloadListNotFoundError`, `PayloadIOVNotFoundError`, `OverlapError`, `TagLockedError` or `TagFrozenError`
    (where the IOV is taken out of another list, the status of that one's tag counts too).
    """
    current = PayloadIOV.objects.filter(id=iov_id).values_list("payload_list__name").first()
    if current is None:
        raise PayloadIOVNotFoundError(iov_id)
    lists = lock_payload_lists({payload_list, *current} - {None})
    target = lists[payload_list]
    iov = lock_payload_iov(iov_id)
    if iov.payload_list_id not in {None, *(found.id for found in lists.values())}:
        raise ConcurrentChangeError(f"Payload IOV {iov_id} was attached elsewhere at the same moment; try again.")
    if iov.payload_list_id == target.id:
        return iov
    for source in lists.values():
        check_tag(source.global_tag, Action.ADD_IOV if source is target else Action.REMOVE_IOV)
    interval = interval_of(iov)
    check_free(interval, [placed(neighbour) for neighbour in PayloadIOV.objects.around(target, interval.start)])
    claim_counts(lists.values())
    PayloadIOV.objects.filter(id=iov.id).update(payload_list=target, updated=Now())
    iov.payload_list = target
    return iov


@write
def delete_payload_iov(*, global_tag: str, payload_type: str, start: Moment, end: Moment = END_OF_TIME) -> None:
    """Delete the IOV of a tag and type that has exactly that start and end, as they stand on the wire.

    Raises `PayloadListNotFoundError`, `PayloadIOVNotFoundError`, `TagLockedError` or `TagFrozenError`.
    """
    name = (
        PayloadList.objects.filter(global_tag__name=global_tag, payload_type__name=payload_type)
        .values_list("name", flat=True)
        .first()
    )
    if name is None:
        raise PayloadListNotFoundError(f"of type {payload_type} in global tag {global_tag}")
    found = lock_payload_lists([name])[name]
    if found.global_tag is None or found.global_tag.name != global_tag:
        raise ConcurrentChangeError(f"Payload list {name} was attached elsewhere at the same moment; try again.")
    check_tag(found.global_tag, Action.REMOVE_IOV)
    deleted, _ = PayloadIOV.objects.filter(
        payload_list=found,
        major_iov=start.major, minor_iov=start.minor, major_iov_end=end.major, minor_iov_end=end.minor,
    ).delete()  # fmt: skip
    if not deleted:
        until = "an open end" if end == END_OF_TIME else end
        raise PayloadIOVNotFoundError(f"from exactly {start} to {until} in payload list {name}")


def interval_of(iov: PayloadIOV) -> Interval:
    """The interval that the row's columns mean in the configured mode."""
    return Interval.from_wire(
        Moment(iov.major_iov, iov.minor_iov),
        Moment(iov.major_iov_end, iov.minor_iov_end),
        Mode(settings.CDB_IOV_MODE),
    )


def check_interval(iov: PayloadIOV) -> None:
    """Raise `InvalidInputError` if the row's interval is empty or ends before its start."""
    if interval_of(iov).is_empty:
        rule = "after" if settings.CDB_IOV_MODE == Mode.CONTINUOUS else "at or after"
        message = f"The end must be {rule} the start {Moment(iov.major_iov, iov.minor_iov)}."
        raise InvalidInputError(message, {"major_iov_end": [message]})


def placed(iov: PayloadIOV, name: str = "") -> PlacedIOV:
    """The row as the rules of the domain see it; messages call it `name`, or payload IOV with its id."""
    return PlacedIOV(f"{name or f'payload IOV {iov.id}'} ({iov.payload_url})", interval_of(iov))
