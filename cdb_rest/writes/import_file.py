"""Import files: CSV as an export writes it, which is loaded into a temporary table, checked, and read from there."""

import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import psycopg2
from django.conf import settings
from django.db import connection
from psycopg2 import errorcodes

from cdb_rest import named_sql
from cdb_rest.models import PayloadList
from cdb_rest.rules.errors import InvalidInputError
from cdb_rest.rules.moment import Mode, Moment
from cdb_rest.rules.names import NAME_RULE, fits_into_path
from cdb_rest.writes.history import next_version

CREATE = named_sql.load("create_import_table")
COPY = named_sql.load("copy_import")
READ = named_sql.load("read_import")
LINE = named_sql.load("import_line")
TYPES = named_sql.load("import_types")
FAULT = named_sql.load("import_fault")
ROWS = named_sql.load("import_rows")
NEWEST_FIRST = named_sql.load("import_newest_first").replace("{rows}", ROWS)
INTO_EMPTY_LIST = named_sql.load("import_into_empty_list").replace("{rows}", ROWS)

# Some programs write it at the beginning of UTF-8 text.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# In the context of a COPY error, the first number is the line, in every language: the names before it have no digits.
FIRST_NUMBER = re.compile(r"[0-9]+")


def load(file: BinaryIO) -> dict[str, int]:
    """Load a seekable file into a temporary table. Returns the number of rows of each payload type.

    The payload types are in byte order. Must be called in a transaction: the table exists until its end, and
    the other functions of this module read it. The transaction has no statement timeout from then on.

    Raises `InvalidInputError` if the last line is incomplete, and otherwise for the first line that COPY rejects, or
    else for the first line with a payload type that violates `NAME_RULE`, an empty interval or a repeated start. Other
    errors of the driver are raised as they are, not as Django's database errors.
    """
    _seek_to_rows(file)
    with connection.cursor() as cursor:
        cursor.execute(CREATE)
        try:
            with connection.connection.cursor() as driver:
                driver.copy_expert(COPY, file)
        except (psycopg2.DataError, psycopg2.IntegrityError) as error:
            raise InvalidInputError(_message(error.diag)) from error
        cursor.execute(READ)
        cursor.execute(TYPES)
        found = cursor.fetchall()
        cursor.execute(FAULT, _mode())
        fault = cursor.fetchone()
    invalid = [(number, f"payload_type: {NAME_RULE}") for name, _, number in found if not fits_into_path(name)]
    if fault is not None:
        invalid.append((fault[0], _reason(*fault[1:])))
    if invalid:
        number, reason = min(invalid)
        raise InvalidInputError(f"Line {line_of(number)}: {reason}")
    return {name: count for name, count, _ in found}


def _seek_to_rows(file: BinaryIO) -> None:
    """Position the file behind its byte order mark, if any. Raises `InvalidInputError` if it does not end with a newline."""
    if file.seek(0, os.SEEK_END):
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            raise InvalidInputError("The file ends in the middle of a line; was it cut off?")
    file.seek(0)
    if file.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
        file.seek(0)


def line_of(number: int) -> int:
    """The line of the loaded file on which a row ends. The header is line 1; the first row has the number 1."""
    with connection.cursor() as cursor:
        cursor.execute(LINE, {"number": number})
        line: int
        [(line,)] = cursor.fetchall()
        return line


def newest_first(payload_type: str, size: int) -> Iterator[list[dict[str, Any]]]:
    """The rows of a payload type by descending start, in batches of up to `size` rows.

    Each row has its `number` in the file and the columns of `PayloadIOV`, without the payload list. If a row
    overlaps the row of this type with the next later start, its end is replaced by that start, unless the end is open.
    """
    with connection.chunked_cursor() as cursor:
        cursor.execute(NEWEST_FIRST, _mode() | {"payload_type": payload_type})
        while rows := cursor.fetchmany(size):
            names = [column.name for column in cursor.description]
            yield [dict(zip(names, row, strict=True)) for row in rows]


def insert_into_empty_list(payload_type: str, payload_list: PayloadList) -> None:
    """Insert the rows of a payload type into an empty list, as if they were attached one by one, newest first.

    The caller must have locked the list, and must record a change of it.
    """
    values = {"payload_type": payload_type, "list_id": payload_list.id, "version": next_version(payload_list)}
    with connection.cursor() as cursor:
        cursor.execute(INTO_EMPTY_LIST, _mode() | values)


def _reason(major: int, minor: int, major_end: int, minor_end: int, other: int | None) -> str:
    """Why the row with this start and end is invalid.

    `other` is the number of an earlier row with the same payload type and start, or None if the interval is empty.
    """
    start, end = Moment(major, minor), Moment(major_end, minor_end)
    if other is not None:
        return f"line {line_of(other)} has the same payload type and the same start, {start}."
    return f"the IOV from {start} to {end} is empty."


def _mode() -> dict[str, Any]:
    return {"inclusive": Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE}


def _message(diagnosis: Any) -> str:
    """The error message for the diagnosis of a failed COPY, with the number of the line."""
    line = FIRST_NUMBER.search(diagnosis.context or "")
    reason = diagnosis.message_primary
    if diagnosis.sqlstate == errorcodes.CHECK_VIOLATION:
        reason = diagnosis.constraint_name
    elif diagnosis.sqlstate == errorcodes.NOT_NULL_VIOLATION:
        reason = f"{diagnosis.column_name} is missing"
    return f"Line {line[0]}: {reason}." if line else f"{reason}."
