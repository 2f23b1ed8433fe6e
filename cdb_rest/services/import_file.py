"""The rows of a file, in a table of the transaction that imports them: what is wrong with a line, and what it means."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import psycopg2
from django.conf import settings
from django.db import connection
from psycopg2 import errorcodes

from cdb_rest import named_sql
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import Mode, Moment
from cdb_rest.domain.names import NAME_RULE, fits_into_path

CREATE = named_sql.load("create_import_table")
COPY = named_sql.load("copy_import")
READ = named_sql.load("read_import")
LINE = named_sql.load("import_line")
TYPES = named_sql.load("import_types")
FAULT = named_sql.load("import_fault")
ROWS = named_sql.load("import_rows")
NEWEST_FIRST = named_sql.load("import_newest_first").replace("{rows}", ROWS)
INTO_EMPTY_LIST = named_sql.load("import_into_empty_list").replace("{rows}", ROWS)

# What some programs put before a text to say that it is UTF-8.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The database says first in which line it was, in whatever language, behind names without digits.
FIRST_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class RowsOfType:
    """What the file has of a payload type: the rows, and what they take in the change log at most, in bytes."""

    count: int
    log_bytes: int


def load(file: BinaryIO) -> dict[str, RowsOfType]:
    """Read the file from its beginning; returns what there is of each payload type, in byte order.

    Raises `InvalidInputError` that names the first line that can't be read, or else the first one that is wrong.
    """
    _begin(file)
    with connection.cursor() as cursor:
        cursor.execute(CREATE)
        try:
            with connection.connection.cursor() as driver:
                driver.copy_expert(COPY, file)
        except (psycopg2.DataError, psycopg2.IntegrityError) as error:
            raise InvalidInputError(_sentence(error.diag)) from error
        cursor.execute(READ)
        cursor.execute(TYPES)
        found = cursor.fetchall()
        cursor.execute(FAULT, _mode())
        fault = cursor.fetchone()
    wrong = [(number, f"payload_type: {NAME_RULE}") for name, _, number, _ in found if not fits_into_path(name)]
    if fault is not None:
        wrong.append((fault[0], _reason(*fault[1:])))
    if wrong:
        number, reason = min(wrong)
        raise InvalidInputError(f"Line {line_of(number)}: {reason}")
    return {name: RowsOfType(count, log_bytes) for name, count, _, log_bytes in found}


def _begin(file: BinaryIO) -> None:
    """Go to where the rows of the file begin. Raises `InvalidInputError` if it does not end as its last row has to."""
    if file.seek(0, os.SEEK_END):
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            raise InvalidInputError("The file ends in the middle of a line; was it cut off?")
    file.seek(0)
    if file.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
        file.seek(0)


def line_of(number: int) -> int:
    """The line of the file on which the row of this number ends."""
    with connection.cursor() as cursor:
        cursor.execute(LINE, {"number": number})
        line: int
        [(line,)] = cursor.fetchall()
        return line


def newest_first(payload_type: str, size: int) -> Iterator[list[dict[str, Any]]]:
    """The rows of a payload type from the last start to the first, so many at a time: `number`, and the columns of the IOV."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(NEWEST_FIRST, _mode() | {"payload_type": payload_type})
        while rows := cursor.fetchmany(size):
            names = [column.name for column in cursor.description]
            yield [dict(zip(names, row, strict=True)) for row in rows]


def insert_into_empty_list(payload_type: str, list_id: int) -> None:
    """Insert the rows of a payload type into a list that has none: the same as attaching them one by one, newest first."""
    with connection.cursor() as cursor:
        cursor.execute(INTO_EMPTY_LIST, _mode() | {"payload_type": payload_type, "list_id": list_id})


def _reason(major: int, minor: int, major_end: int, minor_end: int, other: int | None) -> str:
    """What is wrong with a row from start to end, `other` being the number of the row that has the same start already."""
    start, end = Moment(major, minor), Moment(major_end, minor_end)
    if other is not None:
        return f"line {line_of(other)} has the same payload type and the same start, {start}."
    return f"the IOV from {start} to {end} is valid at no moment."


def _mode() -> dict[str, Any]:
    return {"inclusive": Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE}


def _sentence(diagnosis: Any) -> str:
    """What the database says about a line, in one."""
    line = FIRST_NUMBER.search(diagnosis.context or "")
    what = diagnosis.message_primary
    if diagnosis.sqlstate == errorcodes.CHECK_VIOLATION:
        what = diagnosis.constraint_name
    elif diagnosis.sqlstate == errorcodes.NOT_NULL_VIOLATION:
        what = f"{diagnosis.column_name} is missing"
    return f"Line {line[0]}: {what}." if line else f"{what}."
