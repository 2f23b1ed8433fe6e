"""Bulk insertion of payload IOVs into payload lists."""

from typing import Any

from cdb_rest.models import ChangeAction, PayloadIOV, PayloadList
from cdb_rest.rules.access import BY_THE_SYSTEM, Origin
from cdb_rest.rules.errors import PayloadListNotFoundError, invalid_field
from cdb_rest.rules.status import Action
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.locks import check_tag, lock_payload_lists
from cdb_rest.writes.placing import Placement, Plan
from cdb_rest.writes.rows import check_interval, interval_of, refusals_of, refused_rows
from cdb_rest.writes.transactions import write


@write
def insert_payload_iovs(*, rows: list[dict[str, Any]], origin: Origin = BY_THE_SYSTEM) -> int:
    """Insert many IOVs into payload lists in the order given, all or none. Returns the number of rows.

    Each row has the columns of `PayloadIOV`; its `payload_list` is a name. A row with an end is attached by the interval
    rule. A row with an open end is valid from its start to the next start in its list; existing rows are not cut beyond
    that. In a protected tag, no row may change existing intervals. A start must not exist in the list already, and must
    not occur twice in the request for one list.

    Raises the error of the first invalid row; its `rows` describes the first `ROWS_NAMED` invalid rows. The errors are
    `PayloadListNotFoundError`, `TagFrozenError`, `InvalidInputError` (empty interval, or repeated start in the
    request), `OverlapError` (change of a protected tag, or start that exists), and those of missing permissions. Also
    raises `ConcurrentChangeError`.
    """
    if not rows:
        return 0
    lists = lock_payload_lists(list(dict.fromkeys(row["payload_list"] for row in rows)))
    placements: list[Placement] = []
    first_with_start: dict[tuple[int, int, int], int] = {}

    def read(numbered: tuple[int, dict[str, Any]]) -> None:
        placement = _placement(*numbered, lists, origin)
        iov = placement.iov
        start = placement.payload_list.id, iov.major_iov, iov.minor_iov
        first = first_with_start.setdefault(start, placement.number)
        if first != placement.number:
            raise invalid_field("major_iov", f"Row {first} has the same start in the same payload list.")
        placements.append(placement)

    refusals = refusals_of(read, list(enumerate(rows)))
    plan = Plan(placements, equal_starts=False)
    if refusals or plan.refusals:
        raise refused_rows([*refusals, *plan.refusals], len(rows))
    changes = Changes()
    plan.apply(changes)
    changes.record(ChangeAction.BULK, origin)
    return len(rows)


def _placement(number: int, row: dict[str, Any], lists: dict[str, PayloadList], origin: Origin) -> Placement:
    """The placement of a row.

    Raises the errors of `check_tag`, `PayloadListNotFoundError`, or `InvalidInputError` for an empty interval.
    """
    if row["payload_list"] not in lists:
        raise PayloadListNotFoundError(row["payload_list"])
    payload_list = lists[row["payload_list"]]
    check_tag(payload_list.global_tag, Action.ADD_IOV, origin, payload_list.payload_type.name)
    iov = PayloadIOV(**row | {"payload_list": payload_list})
    check_interval(iov)
    return Placement(iov, payload_list, since_only=interval_of(iov).is_open, number=number)
