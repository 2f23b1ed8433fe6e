"""The rows of a file, in a table of the transaction that imports them: what is wrong with a line, and what it means."""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import psycopg2
from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import Mode, Moment
from cdb_rest.models.names import NAME_RULE, fits_into_path

CREATE = named_sql.load("create_import_table")
COPY = named_sql.load("copy_import")
INDEX = named_sql.load("index_import")
TYPES = named_sql.load("import_types")
FAULT = named_sql.load("import_fault")
ROWS = named_sql.load("import_rows")
NEWEST_FIRST = named_sql.load("import_newest_first").replace("{rows}", ROWS)
INTO_EMPTY_LIST = named_sql.load("import_into_empty_list").replace("{rows}", ROWS)

PLACE = re.compile(r"line (?P<line>\d+)(, column (?P<column>\w+))?")


def load(file: BinaryIO) -> dict[str, int]:
    """Read the file from its beginning; returns the number of rows of each payload type, in byte order.

    Raises `InvalidInputError` that names the first wrong line.
    """
    file.seek(0)
    with connection.cursor() as cursor:
        cursor.execute(CREATE)
        try:
            with connection.connection.cursor() as driver:
                driver.copy_expert(COPY, file)
        except (psycopg2.DataError, psycopg2.IntegrityError) as error:
            raise InvalidInputError(_sentence(error.diag)) from error
        cursor.execute(INDEX)
        cursor.execute(TYPES)
        found = cursor.fetchall()
        for name, _, line in found:
            if not fits_into_path(name):
                raise InvalidInputError(f"Line {line}: payload_type: {NAME_RULE}")
            _check(name)
        return {name: count for name, count, _ in found}


def newest_first(payload_type: str, size: int) -> Iterator[list[dict[str, Any]]]:
    """The rows of a payload type from the last start to the first, so many at a time: `line`, and the columns of the IOV."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(NEWEST_FIRST, _parameters(payload_type))
        while rows := cursor.fetchmany(size):
            names = [column.name for column in cursor.description]
            yield [dict(zip(names, row, strict=True)) for row in rows]


def insert_into_empty_list(payload_type: str, list_id: int) -> None:
    """Insert the rows of a payload type into a list that has none: the same as attaching them one by one, newest first."""
    with connection.cursor() as cursor:
        cursor.execute(INTO_EMPTY_LIST, _parameters(payload_type) | {"list_id": list_id})


def _check(payload_type: str) -> None:
    """Raise `InvalidInputError` for the first line of the type that has the start of an earlier one, or is never valid."""
    with connection.cursor() as cursor:
        cursor.execute(FAULT, _parameters(payload_type))
        fault = cursor.fetchone()
    if fault is None:
        return
    line, major, minor, major_end, minor_end, other = fault
    start, end = Moment(major, minor), Moment(major_end, minor_end)
    if other is not None:
        raise InvalidInputError(f"Line {line}: line {other} has the same payload type and the same start, {start}.")
    raise InvalidInputError(f"Line {line}: the IOV from {start} to {end} is valid at no moment.")


def _parameters(payload_type: str) -> dict[str, Any]:
    return {"payload_type": payload_type, "inclusive": Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE}


def _sentence(diagnosis: Any) -> str:
    """What the database says about a line, in one."""
    place = PLACE.search(diagnosis.context or "")
    what = diagnosis.message_primary
    if diagnosis.sqlstate == "23514":
        what = diagnosis.constraint_name
    elif diagnosis.sqlstate == "23502":
        what = f"{diagnosis.column_name} is missing"
    elif place and place["column"]:
        what = f"{place['column']}: {what}"
    return f"Line {place['line']}: {what}." if place else f"{what}."
