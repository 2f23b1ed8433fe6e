"""What a database of nopayloaddb holds: its global tags, payload types and lists, and summaries of the rows of lists."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from cdb_rest.adopt.catalog import ROW_FAULTS
from cdb_rest.adopt.decisions import Decisions
from cdb_rest.adopt.source import Snapshot

# Payload lists of one statement, so that progress shows and statements stay short.
LISTS_AT_ONCE = 20
DETACHED = 'iov.payload_list_id IS NULL OR NOT EXISTS (SELECT FROM "PayloadList" WHERE id = iov.payload_list_id)'
Item = TypeVar("Item")


@dataclass(frozen=True)
class SourceTag:
    """A global tag of the source. `status` is None if it has none. If several share a name, the later ones end with their id."""

    id: int
    name: str
    author: str
    description: str
    status: str | None
    created: datetime
    updated: datetime


@dataclass(frozen=True)
class SourceType:
    """A payload type of the source. `id` is None in the variant whose types have no ids."""

    id: int | None
    name: str
    description: str
    created: datetime


@dataclass(frozen=True)
class SourceList:
    """A payload list of the source. `tag_id` and `payload_type` are None if there is no such tag or type.

    `stays`: whether it stays in its tag; false for all but the newest list of a type in a tag, and without a tag.
    """

    id: int
    name: str
    description: str
    tag_id: int | None
    payload_type: str | None
    created: datetime
    updated: datetime
    stays: bool = False


@dataclass(frozen=True)
class Summary:
    """The rows of a payload list of the source: all, those that stay attached, and how many have each fault.

    `rows_hash` is a hash of the attached rows.
    """

    list_id: int
    count: int
    attached: int
    rows_hash: str
    faults: dict[str, int]

    @property
    def changed_by_decisions(self) -> dict[str, int]:
        """The faults because of which answers may differ from those of nopayloaddb."""
        return {
            name: count for name, count in self.faults.items() if count and name not in ("overlap", "wrong_comb_iov")
        }


def batches(items: Sequence[Item], size: int = LISTS_AT_ONCE) -> Iterator[list[Item]]:
    """The items in lists of up to `size`."""
    for first in range(0, len(items), size):
        yield list(items[first : first + size])


def read_tags(snapshot: Snapshot) -> list[SourceTag]:
    """All global tags, by id."""
    return [SourceTag(*row) for row in _with_different_names(snapshot.rows("source_tags"))]


def _with_different_names(rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Rows of an id, a name and more. A name that an earlier row has ends with the id."""
    seen = set()
    for item_id, name, *more in rows:
        yield (item_id, f"{name} (id {item_id})" if name in seen else name, *more)
        seen.add(name)


def read_types(snapshot: Snapshot) -> list[SourceType]:
    """All payload types, by id."""
    return [SourceType(*row) for row in snapshot.rows("source_types")]


def read_lists(snapshot: Snapshot, tag_id: int | None = None) -> list[SourceList]:
    """The payload lists of a tag, or all (None), by id."""
    rows = _with_different_names(snapshot.rows("source_lists", {"tag_id": tag_id}))
    lists = [SourceList(*row) for row in rows]
    newest: dict[tuple[int | None, str | None], SourceList] = {}
    for item in lists:
        key = (item.tag_id, item.payload_type)
        if key not in newest or (item.updated, item.id) > (newest[key].updated, newest[key].id):
            newest[key] = item
    return [
        replace(item, stays=item.tag_id is not None and newest[item.tag_id, item.payload_type] is item)
        for item in lists
    ]


def summaries(
    snapshot: Snapshot,
    lists: Sequence[SourceList],
    decisions: Decisions,
    progress: Callable[[int], object] = lambda count: None,
) -> dict[int, Summary]:
    """The summary of each payload list by its id. `progress` gets the number of rows of each batch."""
    found = {}
    for batch in batches([item.id for item in lists]):
        for row in snapshot.rows("source_summary", {"list_ids": batch} | decisions.parameters):
            found[row[0]] = _summary(row)
        progress(sum(found[list_id].count for list_id in batch))
    return found


def detached_summary(snapshot: Snapshot, decisions: Decisions) -> Summary:
    """The summary of the IOVs in no list. Of the faults, only a bad revision matters for them."""
    [row] = snapshot.rows("source_summary", {"list_ids": [0]} | decisions.parameters, condition=DETACHED)
    return _summary(row)


def _summary(row: Sequence[Any]) -> Summary:
    list_id, count, attached, rows_hash, *faults = row
    return Summary(list_id, count, attached, rows_hash, dict(zip(ROW_FAULTS, faults, strict=True)))
