"""Reading the rows of a compiled tag from PostgreSQL, in parts by start, each of which fits into memory."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.compiled.manifest import UnusableError
from cdb_rest.compiled.tag import SIGNATURE, TRAILER
from cdb_rest.connections.postgresql import fetch_all

SAMPLE = named_sql.load("compile_sample")

# About so many rows, or so many bytes, are read at once. More take more memory; fewer take more searches of the index.
ROWS_AT_ONCE = 65_536
BYTES_AT_ONCE = 2**25
# So many rows of each part are in the sample by which the parts are made.
SAMPLED_OF_A_PART = 64
# The bytes of a row besides its texts.
ROW_BYTES = 150
# Before and after all moments, combined: major numbers are from 0 to 2^63 - 1.
BEGINNING, END = Decimal(-1), Decimal(2**63)


class _Messages:
    """A file object that collects the messages of a COPY: one for each row, the first with the signature, and the trailer."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.write = self.messages.append

    def records(self) -> list[bytes]:
        """The records of the rows. Raises `UnusableError` if the messages do not begin and end as expected."""
        *records, last = self.messages or [b""]
        if last == SIGNATURE + TRAILER:
            # There are no rows.
            return []
        if not records or not records[0].startswith(SIGNATURE) or last != TRAILER:
            raise UnusableError("PostgreSQL's COPY did not begin and end as expected")
        records[0] = records[0][len(SIGNATURE) :]
        return records


def read_parts(statement: str, values: Mapping[str, Any], rows: int, *, with_history: bool) -> Iterator[list[bytes]]:
    """The records of the rows of a statement in parts: all rows of a part start after those of the parts before it.

    Within a part, they have no order. `statement` has the columns and the last two parameters of `compile_rows`, `values`
    its other parameters. `rows` is the number of rows, 0 if it is unknown. Must be called in a snapshot.
    """
    moments = [BEGINNING, END]
    if rows == 0 or rows > ROWS_AT_ONCE:
        share = min(1.0, SAMPLED_OF_A_PART / ROWS_AT_ONCE)
        sample = fetch_all(SAMPLE, {"list_ids": values["list_ids"], "share": share, "with_history": with_history})
        moments[1:1] = _separators(sample, share)
    for after, until in pairwise(moments):
        messages = _Messages()
        with connection.cursor() as cursor:
            bound = cursor.cursor.mogrify(statement, {**values, "after": after, "until": until}).decode()
            cursor.copy_expert(f"COPY ({bound}) TO STDOUT (FORMAT binary)", messages)
        yield messages.records()


def _separators(sample: Iterable[tuple[Decimal, int]], share: float) -> list[Decimal]:
    """The starts after which a part ends, from a sample of starts and bytes of texts that has this share of the rows."""
    found: list[Decimal] = []
    rows = size = 0.0
    for (start, texts), (following, _) in pairwise(sorted(sample)):
        rows += 1 / share
        size += (texts + ROW_BYTES) / share
        # Rows with the same start belong to the same part.
        if start != following and (rows >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE):
            found.append(start)
            rows = size = 0.0
    return found
