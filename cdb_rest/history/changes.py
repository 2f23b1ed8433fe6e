"""What a change of a global tag removed and added, read from the history of rows."""

from collections.abc import Iterator
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from cdb_rest.history.contents import TagList, lists_at, stream_rows
from cdb_rest.models import PAYLOAD_COLUMNS, ChangeAction, GlobalTagChange, PayloadListMembership, PayloadListVersion
from cdb_rest.models.payload_iov import load_statement
from cdb_rest.rules.errors import RevisionPrunedError

ROWS = load_statement("change_rows")
# The members of `GlobalTagChange.source` that say which request was accepted.
OF_REQUEST = ("request", "requested_by")
Rows = Iterator[dict[str, Any]]
# The id of a payload list, the id of the list that has its rows, and the versions of the latter before and after a change, None
# if the list was not in the tag.
Versions = tuple[int, int, int | None, int | None]


def read_change(
    change: GlobalTagChange, most: int | None = None
) -> tuple[dict[str, Any], dict[str, Any], Iterator[tuple[str, Rows]]]:
    """What a change removed and what it added: attributes of the tag (`before`, `after`), and the IOVs.

    Attributes are `status` and `payload_lists` (names by payload type), as far as they changed; both texts, `author` and
    `description`, if one of them changed; and in `after` the source of a clone or a scenario. The IOVs are groups of rows,
    first those of "before", then those of "after"; a side without IOVs has no group. A group must be consumed before the next
    one. Removing and adding leads from the state before to the state after. With `most`, there are only the first IOVs of
    each side, which takes as long as reading the lists that have them, and a side may have an empty group. The caller must be
    in a snapshot until all is read.

    Raises `RevisionPrunedError` if the rows before or after the change are no longer stored.
    """
    previous = previous_change(change)
    before: dict[str, Any] = {}
    after = {name: value for name, value in (change.source or {}).items() if name not in OF_REQUEST}
    if change.action == ChangeAction.DESCRIBE:
        before, after = after["before"], after["after"]
    is_deleted = change.action == ChangeAction.DELETE
    if is_deleted or previous is None or previous.status != change.status:
        before |= {"status": previous.status} if previous else {}
        after |= {} if is_deleted else {"status": change.status}
    was, now = ({payload_list.id: payload_list for payload_list in lists} for lists in lists_around(change))
    _add_lists(before, [payload_list for payload_list in was.values() if payload_list.id not in now])
    _add_lists(after, [payload_list for payload_list in now.values() if payload_list.id not in was])
    return before, after, _read_rows(was, now) if most is None else _first_rows(was, now, most)


def of_payload_type(changes: QuerySet[GlobalTagChange], payload_type: str) -> QuerySet[GlobalTagChange]:
    """Those of the changes that changed the IOVs of a payload type, or its payload list."""
    versions = PayloadListVersion.objects.filter(
        payload_list_id=OuterRef("payload_list_id"), number=OuterRef(OuterRef("number"))
    )
    members = PayloadListMembership.objects.filter(payload_type=payload_type, tag_id=OuterRef("tag_id"))
    number = OuterRef("number")
    return changes.filter(Exists(members.filter(Q(added_in=number) | Q(removed_in=number) | Exists(versions))))


def newest_revision(global_tag: str) -> int:
    """The newest revision in the change log of a tag, also of a deleted one; 0 if there is none."""
    changes = GlobalTagChange.objects.filter(global_tag=global_tag).order_by("-revision")
    return changes.values_list("revision", flat=True).first() or 0


def previous_change(change: GlobalTagChange) -> GlobalTagChange | None:
    """The change of the tag before this one, None for its first one.

    Raises `RevisionPrunedError` if the contents before or after the change are no longer stored.
    """
    earlier = GlobalTagChange.objects.filter(global_tag=change.global_tag, revision__lt=change.revision)
    previous = earlier.order_by("-revision").first()
    if previous is not None and previous.tag_id != change.tag_id:
        previous = None
    if not change.has_history or not (previous is None or previous.has_history) or change.tag_id is None:
        raise RevisionPrunedError(
            f"What change {change.revision} of global tag {change.global_tag} removed and added is no longer stored."
        )
    return previous


def lists_around(change: GlobalTagChange) -> tuple[list[TagList], list[TagList]]:
    """The payload lists of the tag before and after a change."""
    if change.tag_id is None:
        return [], []
    after = [] if change.action == ChangeAction.DELETE else lists_at(change.tag_id, change.number)
    return lists_at(change.tag_id, change.number - 1), after


def _add_lists(side: dict[str, Any], lists: list[TagList]) -> None:
    if lists:
        side["payload_lists"] = {payload_list.payload_type: payload_list.name for payload_list in lists}


def _read_rows(was: dict[int, TagList], now: dict[int, TagList]) -> Iterator[tuple[str, Rows]]:
    values = _values(["before", "after"], _changed(was, now))
    for side, rows in groupby(stream_rows(ROWS, values), key=itemgetter("side")):
        yield side, _documents(rows, was | now)


def _first_rows(was: dict[int, TagList], now: dict[int, TagList], most: int) -> Iterator[tuple[str, Rows]]:
    """The first rows of each side. A change may have millions, and a statement sorts the rows of all of its lists."""
    changed = _changed(was, now)
    for side, lists in (("before", was), ("after", now)):
        of_side = [row for row in changed if row[0] in lists]
        rows = chain.from_iterable(stream_rows(ROWS, _values([side], part)) for part in _growing(of_side))
        yield side, islice(_documents(rows, lists), most)


def _growing(lists: list[Versions]) -> Iterator[list[Versions]]:
    """The lists in parts of 1, 2, 4, 8 and so on: few parts for many small lists, and the first list alone if it is large."""
    size = 1
    while lists:
        yield lists[:size]
        lists, size = lists[size:], size * 2


def _changed(was: dict[int, TagList], now: dict[int, TagList]) -> list[Versions]:
    """The payload lists that have changed, by id."""
    found: list[Versions] = []
    for item in sorted({*was, *now}):
        before, after = was.get(item), now.get(item)
        if before is not None and after is not None:
            # A list that shared rows before has copies of them, in the version in which it shared them.
            found.append((item, item, before.version, after.version))
        elif before is not None:
            found.append((item, before.rows_list_id, before.rows_version, None))
        elif after is not None:
            found.append((item, after.rows_list_id, None, after.rows_version))
    return [item for item in found if item[2] != item[3]]


def _values(sides: list[str], lists: list[Versions]) -> dict[str, Any]:
    """The parameters of `change_rows` (sql/past.sql)."""
    return {
        "sides": sides,
        "list_ids": [one for one, _, _, _ in lists],
        "rows_list_ids": [rows for _, rows, _, _ in lists],
        "befores": [before for _, _, before, _ in lists],
        "afters": [after for _, _, _, after in lists],
    }


def _documents(rows: Rows, lists: dict[int, TagList]) -> Rows:
    return (_document(lists[row["payload_list_id"]].name, row) for row in rows)


def _document(payload_list: str, row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "payload_list": payload_list,
        **{name: row[column] for name, column in PAYLOAD_COLUMNS.items()},
        **{name: row[name] for name in ("major_iov", "minor_iov", "major_iov_end", "minor_iov_end")},
    }
