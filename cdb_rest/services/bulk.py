"""Inserting many payload IOVs into payload lists at once."""

from typing import Any

from cdb_rest.domain.errors import InvalidInputError, PayloadListNotFoundError, raise_refused, refused_rows, wrong_rows
from cdb_rest.domain.origin import UNKNOWN, Origin
from cdb_rest.domain.status import Action
from cdb_rest.models import ChangeAction, PayloadIOV, PayloadList
from cdb_rest.services.change_log import Changes
from cdb_rest.services.intervals import check_interval, interval_of
from cdb_rest.services.locks import check_tag, lock_payload_lists
from cdb_rest.services.placing import Placement, Plan
from cdb_rest.services.transactions import write


@write
def insert_payload_iovs(*, rows: list[dict[str, Any]], origin: Origin = UNKNOWN) -> int:
    """Insert many attached IOVs in the order given, all or none; returns their number.

    Each row has the columns of `PayloadIOV`, `payload_list` being a name. A row with an end is attached by the interval
    rule. One with an open end is valid from its start to the next start of its list, whatever stands there. In a protected
    tag no row may change what is defined. No start may be in its list already, or twice in the request.

    Raises, with every wrong row, `InvalidInputError`, or the first of `PayloadListNotFoundError`, `OverlapError`,
    `TagLockedError` and `TagFrozenError`.
    """
    if not rows:
        return 0
    lists = lock_payload_lists(list(dict.fromkeys(row["payload_list"] for row in rows)))
    _check_lists(rows, lists)
    placements = [_placement(row, lists[row["payload_list"]]) for row in rows]
    _check_intervals(placements)
    plan = Plan(placements, equal_starts=False)
    if plan.refusals:
        raise refused_rows(plan.refusals, len(rows))
    changes = Changes()
    plan.apply(changes)
    changes.record(ChangeAction.BULK, origin)
    return len(rows)


def _placement(row: dict[str, Any], payload_list: PayloadList) -> Placement:
    iov = PayloadIOV(**row | {"payload_list": payload_list})
    return Placement(iov, payload_list, since_only=interval_of(iov).is_open)


def _check_lists(rows: list[dict[str, Any]], lists: dict[str, PayloadList]) -> None:
    """Raise for the rows whose list does not exist, or belongs to a tag that takes no IOV."""

    def check(row: dict[str, Any]) -> None:
        if row["payload_list"] not in lists:
            raise PayloadListNotFoundError(row["payload_list"])
        check_tag(lists[row["payload_list"]].global_tag, Action.ADD_IOV)

    raise_refused(check, rows)


def _check_intervals(placements: list[Placement]) -> None:
    """Raise `InvalidInputError` for intervals that end too early and for two rows with one start in one list."""
    wrong = []
    first_with_start: dict[tuple, int] = {}
    for number, placement in enumerate(placements):
        iov = placement.iov
        first = first_with_start.setdefault((iov.payload_list_id, iov.major_iov, iov.minor_iov), number)
        if first != number:
            wrong.append({"row": number, "major_iov": [f"Row {first} has the same start in the same payload list."]})
        try:
            check_interval(iov)
        except InvalidInputError as error:
            wrong.append({"row": number} | error.fields)
    if wrong:
        raise wrong_rows(wrong, len(placements))
