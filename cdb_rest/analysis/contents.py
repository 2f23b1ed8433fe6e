"""The payload lists of global tags in the present or in the past, and statements that read many of their rows.

The functions need a snapshot (`cdb_rest.connections.snapshot`).
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from django.db import connection
from django.db.models.functions import Coalesce

from cdb_rest import named_sql
from cdb_rest.exports.export import check_payload_types
from cdb_rest.history.contents import find_past, past_lists
from cdb_rest.lookup.model import State, past_state
from cdb_rest.lookup.shared_reads import read_state
from cdb_rest.models import PayloadList
from cdb_rest.rules.as_of import AsOf, TagState
from cdb_rest.rules.moment import Interval, Moment

SETTINGS = named_sql.load("analysis_settings")
WINDOW_ROWS = named_sql.load("window_rows")
PARTS = named_sql.load("validity_parts")
OVERLAY = named_sql.load("overlaid_parts")
PART_COLUMNS = "major_iov_end, minor_iov_end, payload_url, checksum, size, extra"
# About this many rows are read by one statement, so that it takes a few seconds at most.
ROWS_AT_ONCE = 500_000
Item = TypeVar("Item")
# The numbers of payload lists that each side of a statement has for a payload type.
Depths = tuple[int, ...]


class ListVersion(NamedTuple):
    """The rows of a payload list in a version: the list that has them, and its version. `rows` is a guess of their number.

    A list has the same rows in the same version. `rows_version` is this version, or `PRESENT` if it is that of now.
    """

    id: int
    version: int
    rows: int
    rows_version: int


# The payload lists of a payload type in one or several global tags, in the order of the tags.
Lists = tuple[ListVersion, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """The states of one or several global tags, and their payload lists by payload type, in byte order.

    With several tags, the first list of a payload type that has a valid row decides, as in a lookup in several tags.
    """

    states: tuple[State, ...]
    lists: Mapping[str, Lists]

    def only(self, payload_types: Collection[str]) -> "Contents":
        """The same with these payload types only."""
        return replace(self, lists={name: lists for name, lists in self.lists.items() if name in payload_types})


def read_contents(tags: Sequence[TagState], payload_types: Collection[str] = ()) -> Contents:
    """The contents of tags in the present or in the past; only the lists of `payload_types`, unless it is empty.

    Raises `GlobalTagNotFoundError`, and for the past the other errors of `find_past`. Raises `PayloadTypeNotFoundError` for a
    payload type that does not exist, and that no tag has.
    """
    found = [_read_lists(tag, as_of) for tag, as_of in tags]
    states = tuple(state for state, _ in found)
    names = {name for _, lists in found for name in lists}
    check_payload_types(payload_types, names)
    wanted = sorted(names.intersection(payload_types) if payload_types else names, key=str.encode)
    return Contents(states, {name: tuple(lists[name] for _, lists in found if name in lists) for name in wanted})


def _read_lists(tag: str, as_of: AsOf | None) -> tuple[State, dict[str, ListVersion]]:
    """The state of one tag, and its payload lists by payload type."""
    if as_of is None:
        state = read_state(tag, None)
        rows = PayloadList.objects.filter(global_tag__name=tag).values_list(
            "payload_type__name", "rows_list_id", Coalesce("base_version", "version"), "iov_count", "rows_version"
        )
        return state, {name: ListVersion(*columns) for name, *columns in rows}
    past = find_past(tag, as_of)
    then = past_lists(past)
    counts = dict(
        PayloadList.objects.filter(id__in=[payload_list.id for payload_list in then]).values_list("id", "iov_count")
    )
    return past_state(past.version, as_of), {
        item.payload_type: ListVersion(item.rows_list_id, item.rows_version, counts.get(item.id, 0), item.rows_version)
        for item in then
    }


def in_batches(items: Sequence[tuple[Depths, int, Item]]) -> Generator[tuple[Depths, list[Item]]]:
    """The items in batches of about `ROWS_AT_ONCE` rows, each batch with the numbers of lists that its items have.

    `items` are (numbers of lists, number of rows, item), sorted by the numbers of lists. The settings of the transaction are
    changed to those of `analysis_settings` (sql/analysis.sql).
    """
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS)
    for depths, group in groupby(items, key=itemgetter(0)):
        batch: list[Item] = []
        size = 0
        for _, rows, item in group:
            batch.append(item)
            size += rows
            if size >= ROWS_AT_ONCE:
                yield depths, batch
                batch, size = [], 0
        if batch:
            yield depths, batch


def lists_of(sides: Mapping[str, int]) -> str:
    """SQL text of a table `list`, for the placeholder {lists}: payload types, and for each side its lists and versions.

    `sides` has the number of lists of each side by the side's name. The parameters are those of `list_parameters`.
    """
    arrays, columns = ["%(payload_type)s::text[]"], ["payload_type"]
    for side, depth in sides.items():
        for place in range(depth):
            arrays += [f"%({side}_list_{place})s::bigint[]", f"%({side}_version_{place})s::integer[]"]
            columns += [f"{side}_list_{place}", f"{side}_version_{place}"]
    return f"unnest({', '.join(arrays)}) AS list ({', '.join(columns)})"


def list_parameters(payload_types: Sequence[str], sides: Mapping[str, Sequence[Lists]]) -> dict[str, object]:
    """The parameters of `lists_of`: the payload types, and for each side their lists."""
    parameters: dict[str, object] = {"payload_type": list(payload_types)}
    for side, lists in sides.items():
        for place, column in enumerate(zip(*lists, strict=True)):
            parameters[f"{side}_list_{place}"] = [version.id for version in column]
            parameters[f"{side}_version_{place}"] = [version.rows_version for version in column]
    return parameters


def parts_of(side: str, depth: int) -> str:
    """SQL text of a query for the parts in which the lists of a side in `lists_of` have a valid row, the first list first.

    Its other parameters are those of `cdb_rest.exports.export.window_values`.
    """
    parts = [
        PARTS.replace("{rows}", window_rows(f"list.{side}_list_{place}", f"list.{side}_version_{place}", PART_COLUMNS))
        for place in range(depth)
    ]
    return reduce(lambda lower, upper: OVERLAY.replace("{upper}", upper).replace("{lower}", lower), reversed(parts))


def window_rows(payload_list: str, version: str, columns: str) -> str:
    """SQL text of a query for the rows of a payload list that may be valid in a window, with these columns.

    `payload_list` and `version` are SQL expressions. The parameters are those of `cdb_rest.exports.export.window_values`.
    """
    return WINDOW_ROWS.replace("{list}", payload_list).replace("{version}", version).replace("{columns}", columns)


def interval_between(since: Any, until: Any) -> Interval:
    """The interval for two combined values."""
    return Interval(Moment.from_combined(since), Moment.from_combined(until))
