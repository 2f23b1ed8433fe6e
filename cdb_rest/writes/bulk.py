"""Bulk insertion of payload IOVs into payload lists."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from cdb_rest.models import ChangeAction, PayloadList
from cdb_rest.rules.access import BY_THE_SYSTEM, Origin
from cdb_rest.rules.errors import PayloadListNotFoundError, invalid_field
from cdb_rest.rules.iov_rows import Member, faults_of_set
from cdb_rest.rules.status import Action
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.locks import check_list_role, lock_payload_lists
from cdb_rest.writes.placing import Placement, Plan
from cdb_rest.writes.rows import check_interval, new_iov, refusals_of, refused_rows
from cdb_rest.writes.transactions import write


@dataclass(frozen=True)
class BulkResult:
    """The numbers of rows of a bulk insertion that were inserted, and that were valid before."""

    inserted: int
    unchanged: int


@write
def insert_payload_iovs(*, rows: list[dict[str, Any]], origin: Origin = BY_THE_SYSTEM) -> BulkResult:
    """Insert many IOVs into payload lists, all or none.

    Each row has the columns of `PayloadIOV`; its `payload_list` is a name. The rows are a set, whose order has no meaning. A row
    with an end is attached by the interval rule. A row with an open end is valid from its start to the next start in the request
    or in its list; existing rows are not cut beyond that. A row whose payload is valid in its whole interval already changes
    nothing. In a protected tag, no row may change existing intervals. Two rows of one list must not have the same start, nor
    may a row start before the end of another one. Nor may a row that changes something have the start of a stored one.

    Raises the error of the first invalid row; its `rows` describes the first `ROWS_NAMED` invalid rows. The errors are
    `PayloadListNotFoundError`, `TagFrozenError`, `TagLimitError`, `InvalidInputError` (empty interval, or overlap in the
    request), `OverlapError` (change of a protected tag, or start that exists), and those of missing permissions. Also
    raises `ConcurrentChangeError`.
    """
    if not rows:
        return BulkResult(0, 0)
    lists = lock_payload_lists(list(dict.fromkeys(row["payload_list"] for row in rows)))
    placements: list[Placement] = []

    def read(numbered: tuple[int, dict[str, Any]]) -> None:
        placements.append(_placement(*numbered, lists, origin))

    refusals = refusals_of(read, list(enumerate(rows)))
    members = [_member(placement) for placement in placements]
    members.sort(key=lambda member: (member.key, member.interval.start, member.number))
    faults = faults_of_set(members, "row")
    refusals += ((number, invalid_field("major_iov", fault[0].upper() + fault[1:])) for number, fault in faults)
    # The next start of each row must be there before it.
    placements.sort(key=_start, reverse=True)
    following: dict[int, Placement] = {}
    for placement in placements:
        placement.following = following.get(placement.payload_list.id)
        following[placement.payload_list.id] = placement
    plan = Plan(placements, equal_starts=False)
    if refusals or plan.refusals:
        raise refused_rows([*refusals, *plan.refusals], len(rows))
    unchanged = sum(placement.holder is not None for placement in placements)
    if not plan.changes_nothing:
        changes = Changes()
        plan.apply(changes)
        changes.record(ChangeAction.BULK, origin)
    return BulkResult(len(rows) - unchanged, unchanged)


_start = attrgetter("iov.major_iov", "iov.minor_iov")


def _member(placement: Placement) -> Member:
    return Member(placement.payload_list.id, placement.number, placement.interval, not placement.since_only)


def _placement(number: int, row: dict[str, Any], lists: dict[str, PayloadList], origin: Origin) -> Placement:
    """The placement of a row.

    Raises `PayloadListNotFoundError`, `InvalidInputError` for an empty interval, or the errors of missing permissions.
    """
    if row["payload_list"] not in lists:
        raise PayloadListNotFoundError(row["payload_list"])
    payload_list = lists[row["payload_list"]]
    check_list_role(payload_list, Action.ADD_IOV, origin)
    iov = new_iov({name: value for name, value in row.items() if name != "payload_list"})
    if payload_list.global_tag is None:
        iov.creator = origin.principal.identity or None
    return Placement(iov, payload_list, since_only=check_interval(iov).is_open, number=number)
