"""The payload lists of a global tag in the past, and their payload IOVs.

The functions that read several times need a snapshot (`cdb_rest.connections.snapshot`).
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.history.revisions import Past
from cdb_rest.models import payload_columns
from cdb_rest.rules.errors import RevisionPrunedError
from cdb_rest.rules.moment import END_OF_TIME, Moment

PAYLOAD_LISTS = named_sql.load("past_payload_lists")
PAYLOAD_IOVS = payload_columns.load("past_payload_iovs")
COUNTS = named_sql.load("past_counts")
GLOBAL_TAG = named_sql.load("past_global_tag")
# A range that contains the starts of all IOVs.
ALL_STARTS = (Moment(0, 0), END_OF_TIME)


class PastList(NamedTuple):
    """A payload list of a tag in the past. `version` is its version of then; `created` is when the list was created."""

    id: int
    name: str
    payload_type: str
    created: datetime
    version: int


class PastTag(NamedTuple):
    """Attributes of a tag in the past that `Past` does not have. The status is None if it does not exist any more."""

    author: str
    description: str
    created: datetime
    status_id: int | None
    status_description: str | None
    status_created: datetime | None


def past_tag(past: Past) -> PastTag:
    """The attributes of the tag, which may have been deleted since then.

    Raises `RevisionPrunedError` if another program deleted it, so that they are not stored.
    """
    rows = fetch_all(GLOBAL_TAG, {"tag_id": past.tag_id, "status": past.status})
    if not rows:
        raise RevisionPrunedError(f"What global tag {past.tag} was at revision {past.revision} is no longer stored.")
    return PastTag(*rows[0])


def past_lists(past: Past) -> list[PastList]:
    """The payload lists that the tag had, ordered by id."""
    return lists_at(past.tag_id, past.number)


def lists_at(tag_id: int, number: int) -> list[PastList]:
    """The payload lists that a tag had after the change with that number, ordered by id."""
    return [PastList(*row) for row in fetch_all(PAYLOAD_LISTS, {"tag_id": tag_id, "number": number})]


def past_counts(past: Past) -> tuple[int, int]:
    """The numbers of payload lists and of payload IOVs that the tag had."""
    [(lists, iovs)] = fetch_all(COUNTS, {"tag_id": past.tag_id, "number": past.number})
    return lists, iovs


def past_iovs(lists: Sequence[PastList], starts: tuple[Moment, Moment] = ALL_STARTS) -> Iterator[dict[str, Any]]:
    """The IOVs of the lists in their versions, in the order of the lists and then by start, by columns.

    `starts` are the first and the last moment at which they may start. They have the columns of `PayloadIOV`, except
    `updated` and `added_in`. Read with a server-side cursor, so that the memory is limited; the caller must be in a
    transaction.
    """
    values = {
        "list_ids": [one.id for one in lists],
        "versions": [one.version for one in lists],
        "first": starts[0].combined,
        "last": starts[1].combined,
    }
    yield from stream_rows(PAYLOAD_IOVS, values)


def stream_rows(statement: str, values: dict[str, Any], size: int = 2000) -> Iterator[dict[str, Any]]:
    """The rows of a query by columns, read `size` at a time with a server-side cursor. Needs a transaction."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, values)
        while rows := cursor.fetchmany(size):
            names = [column.name for column in cursor.description]
            for row in rows:
                yield dict(zip(names, row, strict=True))
