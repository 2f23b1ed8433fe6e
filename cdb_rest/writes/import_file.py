"""The rows of an import file in a temporary table, so that a file of any size needs little memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import psycopg2
from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.models import PayloadList
from cdb_rest.rules.iov_rows import FAULTS_NAMED, IOVRow, Member, faults_of_set
from cdb_rest.rules.moment import END_OF_TIME, Interval, Mode, Moment
from cdb_rest.writes.history import next_version

CREATE = named_sql.load("create_import_table")
COPY = named_sql.load("copy_import")
INDEX = named_sql.load("index_import")
SORTED = named_sql.load("import_sorted")
NEWEST_FIRST = named_sql.load("import_newest_first")
IN_ORDER = named_sql.load("import_in_order")
INTO_EMPTY_LIST = named_sql.load("import_into_empty_list")
ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


@dataclass
class TypeRows:
    """The rows of a payload type in a file: how many they are, the number of the first line, and the first start.

    `last` is the last start or end that the file names, `last_end` the last end if rows without one are open.
    """

    count: int
    number: int
    first: Moment
    last: Moment
    last_end: Moment


def load(rows: Iterable[IOVRow]) -> None:
    """Load rows into the temporary table. Must be called in a transaction: the table exists until its end.

    The other functions of this module read it. The transaction has no statement timeout from then on. Raises the errors of
    `rows`; other errors of the driver are raised as they are, not as Django's database errors.
    """
    source = _CopySource(rows)
    with connection.cursor() as cursor:
        cursor.execute(CREATE)
        try:
            with connection.connection.cursor() as driver:
                driver.copy_expert(COPY, source)
        except psycopg2.Error:
            if source.error is not None:
                raise source.error from None
            raise
        cursor.execute(INDEX)


class _CopySource:
    """Rows as a file for COPY. The driver would replace an error of the rows by its own, so the error is kept in `error`."""

    def __init__(self, rows: Iterable[IOVRow]) -> None:
        self._lines = (_line(row) for row in rows)
        self._rest = ""
        self.error: Exception | None = None

    def read(self, size: int) -> str:
        parts, length = [self._rest], len(self._rest)
        try:
            while length < size and (line := next(self._lines, "")):
                parts.append(line)
                length += len(line)
        except Exception as error:
            self.error = error
            raise
        text = "".join(parts)
        self._rest = text[size:]
        return text[:size]


def _line(row: IOVRow) -> str:
    (major, minor), (major_end, minor_end) = row.since, row.until or END_OF_TIME
    kind, url, checksum = (text.translate(ESCAPES) for text in (row.payload_type, row.payload_url, row.checksum))
    revision = r"\N" if row.revision is None else row.revision
    return (
        f"{row.number}\t{kind}\t{url}\t{checksum}\t{row.size}\t{revision}\t{major}\t{minor}\t{major_end}\t{minor_end}\t"
        f"{row.until is not None}\t{row.is_open}\n"
    )


def read_types(faults: list[tuple[int, str]] | None) -> dict[str, TypeRows]:
    """The payload types of the file in byte order. The number and the fault of rows that violate a set are added to `faults`.

    None as `faults`: the rows need not be a set.
    """
    types: dict[str, TypeRows] = {}
    members = _noted(_members(), types)
    if faults is None:
        for _ in members:
            pass
    else:
        faults += islice(faults_of_set(members, "line"), FAULTS_NAMED)
    return types


def _noted(members: Iterator[Member], types: dict[str, TypeRows]) -> Iterator[Member]:
    """The same members. Their payload types are noted in `types`."""
    for member in members:
        interval = member.interval
        last = interval.end if member.has_end else interval.start
        rows = types.get(str(member.key))
        if rows is None:
            rows = types[str(member.key)] = TypeRows(0, member.number, interval.start, last, interval.end)
        rows.number = min(rows.number, member.number)
        rows.count, rows.last, rows.last_end = rows.count + 1, max(rows.last, last), max(rows.last_end, interval.end)
        yield member


def _members() -> Iterator[Member]:
    mode = Mode(settings.CDB_IOV_MODE)
    with connection.chunked_cursor() as cursor:
        cursor.execute(SORTED)
        while rows := cursor.fetchmany(10_000):
            for payload_type, line, major, minor, major_end, minor_end, has_end in rows:
                interval = Interval.from_wire(Moment(major, minor), Moment(major_end, minor_end), mode)
                yield Member(payload_type, line, interval, has_end)


def read_rows(payload_type: str, size: int, *, in_order: bool) -> Iterator[list[dict[str, Any]]]:
    """The rows of a payload type in batches of up to `size`, by descending start or `in_order` of the file.

    Each row has its `line`, the columns of `PayloadIOV` without the payload list, `has_end` and `is_open`.
    """
    with connection.chunked_cursor() as cursor:
        cursor.execute(IN_ORDER if in_order else NEWEST_FIRST, {"payload_type": payload_type})
        while rows := cursor.fetchmany(size):
            names = [column.name for column in cursor.description]
            yield [dict(zip(names, row, strict=True)) for row in rows]


def insert_into_empty_list(payload_type: str, payload_list: PayloadList) -> None:
    """Insert the rows of a payload type into an empty list, as if they were attached one by one, newest first.

    The caller must have locked the list, and must record a change of it.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            INTO_EMPTY_LIST,
            {"payload_type": payload_type, "list_id": payload_list.id, "version": next_version(payload_list)},
        )
