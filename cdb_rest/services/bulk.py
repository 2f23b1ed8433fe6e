"""Inserting many payload IOVs into payload lists at once."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.domain.attach import PlacedIOV, check_free, check_keeps_defined
from cdb_rest.domain.errors import InvalidInputError, OverlapError, PayloadListNotFoundError, wrong_rows
from cdb_rest.domain.status import Action, is_protected
from cdb_rest.models import PayloadIOV, PayloadList
from cdb_rest.services.locks import check_tag, claim_counts, lock_payload_lists
from cdb_rest.services.payload_iovs import check_interval, interval_of, placed
from cdb_rest.services.transactions import write

EQUAL_STARTS = named_sql.load("equal_starts")
BESIDE_INSERTED = named_sql.load("beside_inserted_iovs")
BEFORE_NEW_STARTS = named_sql.load("before_new_starts")
# Rows of one INSERT: enough to make the round trips negligible, few enough to keep each statement small.
ROWS_PER_INSERT = 1000


@write
def insert_payload_iovs(*, rows: list[dict[str, Any]]) -> int:
    """Insert many attached IOVs, all or none; returns their number.

    Each row has the columns of `PayloadIOV`, `payload_list` being a name. A row with an open end is valid from its
    start to the next start of its list, whatever stands there; a row with an end must find its interval free. In a
    protected tag no row may change what is defined.

    Raises `InvalidInputError` with the rows that are wrong, `PayloadListNotFoundError`, `OverlapError`,
    `TagLockedError` or `TagFrozenError`.
    """
    lists = _lock_lists(rows)
    for payload_list in lists.values():
        check_tag(payload_list.global_tag, Action.ADD_IOV)
    iovs = [PayloadIOV(**row | {"payload_list": lists[row["payload_list"]]}) for row in rows]
    _check_rows(iovs)
    _check_equal_starts(iovs)
    _check_keeps_defined(iovs)
    claim_counts(lists.values())
    PayloadIOV.objects.bulk_create(iovs, batch_size=ROWS_PER_INSERT)
    _check_free(iovs)
    return len(iovs)


def _lock_lists(rows: list[dict[str, Any]]) -> dict[str, PayloadList]:
    names = [row["payload_list"] for row in rows]
    try:
        return lock_payload_lists(list(dict.fromkeys(names))) if names else {}
    except PayloadListNotFoundError as error:
        raise PayloadListNotFoundError(error.name, f"Row {names.index(error.name)}: ") from error


def _check_rows(iovs: list[PayloadIOV]) -> None:
    """Raise `InvalidInputError` for intervals that end too early and for two rows with one start in one list."""
    wrong = []
    first_with_start: dict[tuple, int] = {}
    for index, iov in enumerate(iovs):
        start = (iov.payload_list_id, iov.major_iov, iov.minor_iov)
        first = first_with_start.setdefault(start, index)
        if first != index:
            wrong.append({"row": index, "major_iov": [f"Row {first} has the same start in the same payload list."]})
        try:
            check_interval(iov)
        except InvalidInputError as error:
            wrong.append({"row": index} | error.fields)
    if wrong:
        raise wrong_rows(wrong, len(iovs))


def _check_equal_starts(iovs: list[PayloadIOV]) -> None:
    """Raise `OverlapError` if a list has an IOV with the start of one of the rows already."""
    with connection.cursor() as cursor:
        cursor.execute(EQUAL_STARTS, _starts(iovs))
        for row, iov_id in cursor.fetchall():
            raise OverlapError(
                f"Row {row}: payload IOV {iov_id} of {iovs[row].payload_list} starts at the same moment; nothing was stored."
            )


def _check_keeps_defined(iovs: list[PayloadIOV]) -> None:
    """Raise `OverlapError` if a row with an open end would change what is defined in a protected tag."""
    rows = [row for row, iov in enumerate(iovs) if interval_of(iov).is_open and _is_protected(iov.payload_list)]
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(BEFORE_NEW_STARTS, _starts([iovs[row] for row in rows]))
        for position, *columns, has_later in cursor.fetchall():
            row = rows[position]
            with _naming_row(row):
                check_keeps_defined(interval_of(iovs[row]).start, _placed(columns), is_last=not has_later)


def _check_free(iovs: list[PayloadIOV]) -> None:
    """Raise `OverlapError` if a row with an end overlaps an IOV beside it, be that older or another of the rows."""
    bounded = {iov.id: row for row, iov in enumerate(iovs) if not interval_of(iov).is_open}
    if not bounded:
        return
    rows_of = {iov.id: row for row, iov in enumerate(iovs)}
    neighbours: dict[int, list[PlacedIOV]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(BESIDE_INSERTED, {"iov_ids": list(bounded)})
        for iov_id, *columns in cursor.fetchall():
            beside = rows_of.get(columns[0])
            neighbours[iov_id].append(_placed(columns, "" if beside is None else f"row {beside}"))
    for iov_id, row in bounded.items():
        with _naming_row(row):
            check_free(interval_of(iovs[row]), neighbours[iov_id])


def _is_protected(payload_list: PayloadList) -> bool:
    return payload_list.global_tag is not None and is_protected(payload_list.global_tag.status.name)


def _starts(iovs: list[PayloadIOV]) -> dict[str, list]:
    return {
        "list_ids": [iov.payload_list_id for iov in iovs],
        "moments": [interval_of(iov).start.combined for iov in iovs],
    }


def _placed(columns: list, name: str = "") -> PlacedIOV:
    keys = ("id", "payload_url", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end")
    return placed(PayloadIOV(**dict(zip(keys, columns, strict=True))), name)


@contextlib.contextmanager
def _naming_row(row: int) -> Iterator[None]:
    """Say in an `OverlapError` which row of the request is meant."""
    try:
        yield
    except OverlapError as error:
        raise OverlapError(f"Row {row}: {error} Nothing was stored.") from error
