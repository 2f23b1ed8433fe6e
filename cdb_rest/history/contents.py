"""The revisions of a global tag, and its payload lists and IOVs at each of them.

The functions that read several times need a snapshot (`cdb_rest.connections.snapshot`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.db.models.lookups import GreaterThanOrEqual

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.models import ChangeAction, GlobalTag, GlobalTagChange, PayloadList
from cdb_rest.models.payload_iov import load_statement
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import GlobalTagNotFoundError, RevisionNotFoundError, RevisionPrunedError, quoted
from cdb_rest.rules.moment import END_OF_TIME, Moment

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Past:
    """The state of a global tag after a change.

    `number` orders all changes (`GlobalTagChange.number`). `tag_id` is the id that the tag had. `created` is the time of
    the change, and `status` the name of the status after it.
    """

    tag: str
    tag_id: int
    revision: int
    number: int
    created: datetime
    status: str

    @property
    def version(self) -> str:
        """The version for ETags, as the SQL function cdb_answer_at computes it."""
        # In whole microseconds. `timestamp()` is a float, which is not exact enough from 2038 on.
        return f"{self.revision}-{(self.created - EPOCH) // timedelta(microseconds=1):x}"


def find_past(tag: str, as_of: AsOf) -> Past:
    """The state of a tag that is or was called `tag`.

    Raises `GlobalTagNotFoundError`, also if the revision deleted the tag; `RevisionNotFoundError`, also for a time in the
    future or before the tag; or `RevisionPrunedError`.
    """
    changes = GlobalTagChange.objects.filter(global_tag=tag)
    if as_of.revision is not None:
        found = changes.filter(revision=as_of.revision)
    else:
        found = changes.filter(GreaterThanOrEqual(Now(), as_of.time), created__lte=as_of.time)
    columns = ("tag_id", "revision", "number", "created", "status", "has_history", "action")
    row = found.order_by("-created", "-revision").values_list(*columns).first()
    if row is None:
        raise missing_revision(tag, as_of)
    tag_id, revision, number, created, status, has_history, action = row
    check_readable(tag, revision, has_history=has_history, is_deleted=action == ChangeAction.DELETE)
    return Past(tag, tag_id, revision, number, created, status)


def check_readable(tag: str, revision: int, *, has_history: bool, is_deleted: bool) -> None:
    """Raise `GlobalTagNotFoundError` or `RevisionPrunedError` if the state of a revision cannot be read."""
    if is_deleted:
        raise GlobalTagNotFoundError(described=f"{quoted(tag)} at revision {revision}, by which it was deleted")
    if not has_history:
        raise RevisionPrunedError(f"The history of global tag {tag} at revision {revision} is no longer stored.")


def missing_revision(tag: str, as_of: AsOf) -> GlobalTagNotFoundError | RevisionNotFoundError:
    """The error for a state that does not exist: the tag never existed, or it has no such revision."""
    changes = GlobalTagChange.objects.filter(global_tag=tag).order_by("revision").values_list("revision", "created")
    first, last = changes.first(), changes.last()
    if first and last:
        known = " to ".join(f"{revision} ({created:%Y-%m-%dT%H:%M:%SZ})" for revision, created in (first, last))
        return RevisionNotFoundError(f"{as_of} of global tag {quoted(tag)}, which has the revisions {known}")
    is_known = GlobalTag.objects.filter(name=tag).exists()
    return RevisionNotFoundError(f"{as_of} of global tag {quoted(tag)}") if is_known else GlobalTagNotFoundError(tag)


PAYLOAD_LISTS = named_sql.load("payload_lists_after")
PAYLOAD_IOVS = load_statement("payload_iovs_of")
COUNTS = named_sql.load("past_counts")
GLOBAL_TAG = named_sql.load("past_global_tag")
# A range that contains the starts of all IOVs.
ALL_STARTS = (Moment(0, 0), END_OF_TIME)


class TagList(NamedTuple):
    """A payload list of a tag, now or in the past. `version` is its version then; `created` is when the list was created.

    `rows_list_id` and `rows_version` are the list and the version that have its rows (`cdb_rest.models.PayloadList`).
    """

    id: int
    name: str
    payload_type: str
    created: datetime
    version: int
    rows_list_id: int
    rows_version: int


class PastTag(NamedTuple):
    """Attributes of a tag in the past that `Past` does not have. The status is None if it does not exist any more."""

    author: str
    description: str
    created: datetime
    status_id: int | None
    status_description: str | None
    status_created: datetime | None


def past_tag(past: Past) -> PastTag:
    """The attributes that the tag had; it may have been deleted since then.

    Raises `RevisionPrunedError` if another program deleted it, so that they are not stored.
    """
    rows = fetch_all(
        GLOBAL_TAG, {"tag_id": past.tag_id, "tag": past.tag, "revision": past.revision, "status": past.status}
    )
    if not rows:
        raise RevisionPrunedError(f"What global tag {past.tag} was at revision {past.revision} is no longer stored.")
    return PastTag(*rows[0])


def present_lists(lists: QuerySet[PayloadList]) -> list[TagList]:
    """Payload lists as they are now, in the order of the queryset."""
    columns = ("id", "name", "payload_type__name", "created", "version", "rows_list_id", "rows_version")
    return [TagList(*row) for row in lists.values_list(*columns)]


def past_lists(past: Past) -> list[TagList]:
    """The payload lists that the tag had, ordered by id."""
    return lists_at(past.tag_id, past.number)


def lists_at(tag_id: int, number: int) -> list[TagList]:
    """The payload lists that a tag had after the change with that number, ordered by id."""
    return [TagList(*row) for row in fetch_all(PAYLOAD_LISTS, {"tag_id": tag_id, "number": number})]


def past_counts(past: Past) -> tuple[int, int]:
    """The numbers of payload lists and of payload IOVs that the tag had."""
    [(lists, iovs)] = fetch_all(COUNTS, {"tag_id": past.tag_id, "number": past.number})
    return lists, iovs


def iovs_of(lists: Sequence[TagList], starts: tuple[Moment, Moment] = ALL_STARTS) -> Iterator[dict[str, Any]]:
    """The IOVs of the lists in their versions, in the order of the lists and then by start, by columns.

    `starts` are the first and the last moment at which they may start. They have the columns of `PayloadIOV`, except
    `updated` and `added_in`. Read with a server-side cursor, so that the memory is limited; the caller must be in a
    transaction.
    """
    values = {
        "list_ids": [payload_list.id for payload_list in lists],
        **rows_of(lists),
        "first": starts[0].combined,
        "last": starts[1].combined,
    }
    yield from stream_rows(PAYLOAD_IOVS, values)


def rows_of(lists: Sequence[TagList]) -> dict[str, list[int]]:
    """Where the rows of lists are, as parameters of statements: `rows_list_ids` and `rows_versions`."""
    return {
        "rows_list_ids": [payload_list.rows_list_id for payload_list in lists],
        "rows_versions": [payload_list.rows_version for payload_list in lists],
    }


def stream_rows(statement: str, values: dict[str, Any], size: int = 2000) -> Iterator[dict[str, Any]]:
    """The rows of a query by columns, read `size` at a time with a server-side cursor. Needs a transaction."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, values)
        while rows := cursor.fetchmany(size):
            names = [column.name for column in cursor.description]
            for row in rows:
                yield dict(zip(names, row, strict=True))
