"""Payload IOVs as rows: storing many at once, intervals in the mode of `CDB_IOV_MODE`, errors of requests with many rows.

Storing keeps neither the interval rule nor the history.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.models import PAYLOAD_COLUMNS, PayloadIOV
from cdb_rest.models.payload_iov import load_statement
from cdb_rest.rules.errors import CdbError, InvalidInputError, invalid_field
from cdb_rest.rules.moment import Interval, Mode, Moment

PLACE = named_sql.load("place_payload_iovs")
NEXT_IDS = named_sql.load("next_payload_iov_ids")
INSERT = load_statement("insert_payload_iovs")
Row = TypeVar("Row")
# Maximum number of invalid rows that an error names; limits the size of the response.
ROWS_NAMED = 100

# All columns in the order of the model, as `PayloadIOV(*values)` needs them.
NEW: dict[str, Any] = {
    field.attname: field.default if field.has_default() else None
    for field in PayloadIOV._meta.concrete_fields
    if not field.generated
}


def new_iov(columns: Mapping[str, Any]) -> PayloadIOV:
    """An IOV with these columns, whose names must be attributes. `PayloadIOV(**columns)` takes four times as long."""
    values: Any = (NEW | dict(columns)).values()
    return PayloadIOV(*values)


def place_rows(iovs: Sequence[PayloadIOV]) -> None:
    """Store the list, the interval and `added_in` of stored IOVs.

    The index on the starts of a list must hold after each row: a start must be free before another IOV gets it.
    """
    if iovs:
        with connection.cursor() as cursor:
            cursor.execute(PLACE, {"ids": array_of(iov.id for iov in iovs)} | _places(iovs))


def insert_rows(iovs: Sequence[PayloadIOV]) -> None:
    """Insert IOVs. Those without an id get a new one."""
    if not iovs:
        return
    without_id = [iov for iov in iovs if iov.id is None]
    with connection.cursor() as cursor:
        cursor.execute(NEXT_IDS, {"count": len(without_id)})
        for iov, (iov_id,) in zip(without_id, cursor.fetchall(), strict=True):
            iov.id = iov_id
        ids = [iov.id for iov in iovs]
        payloads = {column: [getattr(iov, column) for iov in iovs] for column in PAYLOAD_COLUMNS.values()}
        creators = [iov.creator for iov in iovs]
        cursor.execute(INSERT, {"ids": array_of(ids), "creators": creators, **_places(iovs), **payloads})


def _places(iovs: Sequence[PayloadIOV]) -> dict[str, str]:
    columns = ("payload_list_id", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end", "added_in")
    return {f"{column}s": array_of([getattr(iov, column) for iov in iovs]) for column in columns}


def array_of(numbers: Iterable[int | None]) -> str:
    """An array of integers as PostgreSQL writes it; the driver converts a list of numbers six times as slowly."""
    return f"{{{','.join('NULL' if number is None else str(number) for number in numbers)}}}"


def interval_of(iov: PayloadIOV) -> Interval:
    """The interval of a payload IOV. It may be empty, or end before its start."""
    return intervals_of([iov])[0]


def intervals_of(iovs: Iterable[PayloadIOV]) -> list[Interval]:
    """The interval of each payload IOV, as `interval_of`."""
    mode = Mode(settings.CDB_IOV_MODE)
    return [
        Interval.from_wire(Moment(iov.major_iov, iov.minor_iov), Moment(iov.major_iov_end, iov.minor_iov_end), mode)
        for iov in iovs
    ]


def set_interval(iov: PayloadIOV, interval: Interval) -> None:
    """Set the columns of a payload IOV to an interval. The row is not saved."""
    start, end = interval.on_wire(Mode(settings.CDB_IOV_MODE))
    iov.major_iov, iov.minor_iov = start
    iov.major_iov_end, iov.minor_iov_end = end


def check_interval(iov: PayloadIOV) -> Interval:
    """The interval of a payload IOV. Raises `InvalidInputError` if it is empty or ends before its start."""
    interval = interval_of(iov)
    if interval.is_empty:
        rule = "after" if settings.CDB_IOV_MODE == Mode.CONTINUOUS else "at or after"
        start, end = Moment(iov.major_iov, iov.minor_iov), Moment(iov.major_iov_end, iov.minor_iov_end)
        raise invalid_field("major_iov_end", f"The end {end} must be {rule} the start {start}.")
    return interval


def wrong_rows(rows: list[dict[str, object]], total: int) -> InvalidInputError:
    """The error for a bulk request of `total` rows with malformed rows. The caller raises it.

    `rows` has an object for each malformed row, with its index as `row` and messages by field. The error contains the
    first `ROWS_NAMED` of them.
    """
    count = len(rows) if len(rows) < ROWS_NAMED else f"{ROWS_NAMED} or more"
    return InvalidInputError(f"{count} of {total} rows are invalid; nothing was stored.", rows=rows[:ROWS_NAMED])


def refused_rows(refusals: list[tuple[int, CdbError]], total: int) -> CdbError:
    """The error for a request of `total` rows, from the index and the error of each rejected row (at least one).

    The error of the first rejected row is changed and returned; the caller raises it. Its `rows` describes the first
    `ROWS_NAMED` rejected rows: the index `row`, `code`, `detail`, and messages by field. If `total` > 1, its message also has
    the row's index and the number of rejected rows.
    """
    in_order = sorted(refusals, key=lambda refusal: refusal[0])
    number, first = in_order[0]
    first.rows = [
        {"row": row, "code": error.code, "detail": str(error)} | error.fields for row, error in in_order[:ROWS_NAMED]
    ]
    if total > 1:
        count = len(refusals) if len(refusals) < ROWS_NAMED else f"{ROWS_NAMED} or more"
        first.args = (f"Row {number}: {first} {count} of {total} rows were refused; nothing was stored.",)
    return first


def refusals_of(check: Callable[[Row], None], rows: Sequence[Row]) -> list[tuple[int, CdbError]]:
    """Call `check` for each row. Returns each `CdbError` that it raises, with the index of the row from 0."""
    refusals = []
    for number, row in enumerate(rows):
        try:
            check(row)
        except CdbError as error:
            refusals.append((number, error))
    return refusals
