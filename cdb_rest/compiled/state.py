"""The payload lists of a global tag in one state, as the database tells them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

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


@dataclass(frozen=True, slots=True)
class TagState:
    """A state of a tag: the present one, or a past revision, which has no status. `version` is that of `State`.

    `database` is the result of cdb_database_identity(), None on a standby. `ids` and `keys` are those of its payload lists, in
    the order of a response.
    """

    database: str | None
    tag: str
    tag_id: int
    revision: int
    version: str
    status: str | None
    modified: datetime | None
    ids: tuple[int, ...]
    keys: tuple[ListKey, ...]

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
        lists = _lists(fetch_all(PAST, {"tag_id": past.tag_id, "number": past.number}))
        return TagState(database_identity(), tag, past.tag_id, revision, past.version, None, None, *lists)
    rows = fetch_all(PRESENT, {"tag": tag})
    if not rows:
        return None
    database, tag_id, revision, version, status, modified = rows[0][:6]
    lists = _lists(row[6:] for row in rows if row[6] is not None)
    return TagState(database, tag, tag_id, revision, version, status, modified, *lists)


def _lists(rows: Iterable[tuple[Any, ...]]) -> tuple[tuple[int, ...], tuple[ListKey, ...]]:
    pairs = [(list_id, ListKey(*key)) for list_id, *key in rows]
    return tuple(list_id for list_id, _ in pairs), tuple(key for _, key in pairs)


def database_identity() -> str | None:
    """The identity of the database on the current connection, None for a standby. Raises `django.db.Error`."""
    identity: str | None
    [(identity,)] = fetch_all(IDENTITY, {})
    return identity
