"""Errors of requests with many rows: which rows are invalid, and why."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from cdb_rest.domain.errors import CdbError, InvalidInputError

Row = TypeVar("Row")

# Maximum number of invalid rows that an error names; limits the size of the response.
ROWS_NAMED = 100


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
