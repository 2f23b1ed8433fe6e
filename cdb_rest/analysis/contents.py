"""The payload lists of a global tag in the present or in the past, and statements that read many of their rows.

The functions need a snapshot (`cdb_rest.connections.snapshot`).
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.errors import PayloadListNotFoundError
from cdb_rest.domain.moment import Interval, Moment
from cdb_rest.history.contents import past_lists
from cdb_rest.history.revisions import find_past
from cdb_rest.lookup.model import State, past_state
from cdb_rest.lookup.queries import read_state
from cdb_rest.models import PayloadList
from cdb_rest.services.export import check_payload_type, take_slot

SETTINGS = named_sql.load("analysis_settings")
PARTS = named_sql.load("validity_parts")
# About this many rows are read by one statement, so that it takes a few seconds at most.
ROWS_AT_ONCE = 500_000

Item = TypeVar("Item")


class ListVersion(NamedTuple):
    """A payload list in a version, of the present or of the past. `rows` is its present number of IOVs, 0 if it was deleted.

    A list has the same rows in the same version.
    """

    id: int
    version: int
    rows: int
    is_present: bool

    @property
    def past_version(self) -> int | None:
        """The version for `validity_parts.sql`, which is null for the present."""
        return None if self.is_present else self.version


@dataclass(frozen=True, slots=True)
class Contents:
    """The state of a global tag, and its payload lists by payload type, in byte order."""

    state: State
    lists: Mapping[str, ListVersion]


def read_contents(
    tag: str, as_of: AsOf | None, payload_type: str | None = None, *, may_lack_list: bool = False
) -> Contents:
    """The contents of a tag in the present or in the past; only the list of `payload_type`, unless it is None.

    Raises `GlobalTagNotFoundError`; for a payload type `PayloadTypeNotFoundError`, or, unless `may_lack_list`,
    `PayloadListNotFoundError` if the tag has no such list; for the past also the other errors of `find_past`.
    """
    if as_of is None:
        state = read_state(tag, None)
        rows = PayloadList.objects.filter(global_tag__name=tag).values_list(
            "payload_type__name", "id", "version", "iov_count"
        )
        found = {name: ListVersion(list_id, version, count, is_present=True) for name, list_id, version, count in rows}
    else:
        past = find_past(tag, as_of)
        state = past_state(past.version, as_of)
        then = past_lists(past)
        counts = dict(PayloadList.objects.filter(id__in=[one.id for one in then]).values_list("id", "iov_count"))
        found = {
            one.payload_type: ListVersion(one.id, one.version, counts.get(one.id, 0), is_present=False) for one in then
        }
    if payload_type is None:
        return Contents(state, dict(sorted(found.items(), key=lambda item: item[0].encode())))
    if payload_type not in found:
        check_payload_type(payload_type)
        if may_lack_list:
            return Contents(state, {})
        raise PayloadListNotFoundError(f"of type {payload_type} in global tag {tag}")
    return Contents(state, {payload_type: found[payload_type]})


def in_batches(items: Sequence[tuple[int, Item]]) -> Generator[list[Item]]:
    """The items in batches of about `ROWS_AT_ONCE` rows; each item comes with its number of rows.

    If there are several batches, one of the `CDB_MAX_EXPORTS` slots is taken first; raises `OverloadedError` if there
    is none. The settings of the transaction are changed to those of `analysis_settings.sql`.
    """
    if sum(rows for rows, _ in items) > ROWS_AT_ONCE:
        take_slot()
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS)
    batch: list[Item] = []
    size = 0
    for rows, item in items:
        batch.append(item)
        size += rows
        if size >= ROWS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def parts_of(payload_list: str, version: str) -> str:
    """The statement `validity_parts.sql` for the payload list in a column, in the version in another column.

    Its parameters are those of `cdb_rest.services.export.window_values`.
    """
    return PARTS.replace("{list}", payload_list).replace("{version}", version)


def interval_between(since: Any, until: Any) -> Interval:
    """The interval for two combined values."""
    return Interval(Moment.from_combined(since), Moment.from_combined(until))
