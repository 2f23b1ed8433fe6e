"""Payload IOVs of the change log's earlier format: loaded into temporary tables, and checked against the present ones."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.domain.logged_changes import LoggedChange, Stay
from cdb_rest.history.contents import stream_rows
from cdb_rest.models import ChangeAction, payload_columns

TABLES = payload_columns.load("convert_tables")
STORE_STAY = named_sql.load("convert_store_stay")
CHANGES = named_sql.load("convert_changes")
LOAD_ROWS = payload_columns.load("convert_load_rows")
LOAD_PRESENT = payload_columns.load("convert_load_present")
MAKE_LIVES = payload_columns.load("convert_make_lives")
MISMATCH = payload_columns.load("convert_mismatch")
COUNT_VERSIONS = named_sql.load("convert_count_versions")

Progress = Callable[[int], object]


class Mismatch(NamedTuple):
    """A logged change that contradicts later ones. Only the changes after `number` can be undone."""

    number: int
    payload_list: str | None
    iov_id: int | None
    reason: str

    def __str__(self) -> str:
        iov = f"payload IOV {self.iov_id} of " if self.iov_id is not None else ""
        return f"{iov}payload list {self.payload_list or 'that is unknown'}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ListStay:
    """The stay of the payload list with the id `list_id`, which is None if the list was not found."""

    number: int
    stay: Stay
    list_id: int | None


def read_changes(tag: str, revision: int) -> Iterator[LoggedChange]:
    """The logged changes of a tag up to a revision, newest first, without their IOVs. Needs a transaction."""
    for row in stream_rows(CHANGES, {"tag": tag, "revision": revision}):
        before, after = orjson.loads(row["before"]), orjson.loads(row["after"])
        yield LoggedChange(
            id=row["id"],
            number=row["number"],
            revision=row["revision"],
            status_before=before.get("status"),
            status_after=after.get("status"),
            lists_before=before.get("payload_lists") or {},
            lists_after=after.get("payload_lists") or {},
            is_copy="clone_of" in after or "scenario" in after,
            is_creation=row["action"] == ChangeAction.CREATE,
            is_deletion=row["action"] == ChangeAction.DELETE,
        )


def load(tag: str, changes: Sequence[LoggedChange], stays: Sequence[ListStay], batch: int, progress: Progress) -> None:
    """Load the IOVs of the changes into temporary tables, `batch` changes at a time. The first change is the newest one.

    `progress` is called with the number of changes after each batch.
    """
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        for one in stays:
            stay = one.stay
            values: dict[str, Any] = {
                "stay": one.number,
                "name": stay.name,
                "list_id": one.list_id,
                "first": stay.first or 0,
                "last": stay.last,
                "came_empty": stay.came_empty,
            }
            cursor.execute(STORE_STAY, values)
        for begin in range(0, len(changes), batch):
            part = changes[begin : begin + batch]
            cursor.execute(LOAD_ROWS, {"ids": [change.id for change in part]})
            progress(len(part))
        cursor.execute(LOAD_PRESENT, {"number": changes[0].number})
        cursor.execute(MAKE_LIVES, {"tag": tag})


def find_mismatch(number: int) -> Mismatch | None:
    """The newest change that contradicts the later ones, if any. `number` is that of the newest logged change."""
    with connection.cursor() as cursor:
        cursor.execute(MISMATCH, {"number": number})
        found = cursor.fetchone()
    return Mismatch(*found) if found else None


def count_versions(since: int) -> dict[int, int]:
    """For each stay by its number, how many changes of its IOVs follow its first change, or the change `since`."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT_VERSIONS, {"since": since})
        return dict(cursor.fetchall())
