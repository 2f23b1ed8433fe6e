"""The payload lists of a global tag in one state, as the database tells them."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.history.contents import find_past
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.status import Status

PRESENT = named_sql.load("compile_present")
PAST = named_sql.load("compile_past")
IDENTITY = named_sql.load("compile_identity")


class ListKey(NamedTuple):
    """What identifies the rows of a compiled list in a database.

    `list_id` and `version` say where the rows are (`PayloadList.rows_list_id`), `edited` changes when another program changes
    them, and each row contains the name of the payload type.
    """

    list_id: int
    version: int
    edited: int
    payload_type: str


class StateList(NamedTuple):
    """A payload list of a tag. `rows_version` is the version in which its rows are read, `rows` their number if it is known."""

    id: int
    key: ListKey
    rows_version: int
    rows: int


@dataclass(frozen=True, slots=True)
class TagState:
    """A state of a tag: the present one, or a past revision, which has no status. `version` is that of `State`.

    `database` is the result of cdb_database_identity(), None on a standby. The lists have the order of a response.
    """

    database: str | None
    tag: str
    tag_id: int
    revision: int
    version: str
    status: str | None
    modified: datetime | None
    lists: tuple[StateList, ...]

    @property
    def is_past(self) -> bool:
        """Whether it was asked for as a past revision."""
        return self.status is None

    @property
    def is_fixed(self) -> bool:
        """Whether lookups in it never change, unless an operator deletes the tag or prunes its history."""
        return self.status in (None, Status.FROZEN)


def read_state(tag: str, revision: int | None = None) -> TagState | None:
    """The present state of a tag, None if there is no such tag; or a past revision, for which a snapshot is needed.

    Raises the errors of `find_past`, and `django.db.Error`.
    """
    if revision is not None:
        past = find_past(tag, AsOf(revision=revision))
        rows = fetch_all(PAST, {"tag_id": past.tag_id, "number": past.number})
        lists = tuple(_state_list(*row) for row in rows)
        return TagState(database_identity(), tag, past.tag_id, revision, past.version, None, None, lists)
    rows = fetch_all(PRESENT, {"tag": tag})
    if not rows:
        return None
    database, tag_id, revision, version, status, modified = rows[0][:6]
    lists = tuple(_state_list(*row[6:]) for row in rows if row[6] is not None)
    return TagState(database, tag, tag_id, revision, version, status, modified, lists)


def _state_list(
    list_id: int, payload_type: str, rows_list_id: int, version: int, edited: int, rows_version: int, rows: int
) -> StateList:
    return StateList(list_id, ListKey(rows_list_id, version, edited, payload_type), rows_version, rows)


def database_identity() -> str | None:
    """The identity of the database on the current connection, None for a standby. Raises `django.db.Error`."""
    identity: str | None
    [(identity,)] = fetch_all(IDENTITY, {})
    return identity
