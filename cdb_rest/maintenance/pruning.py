"""Pruning of the history: first revisions lose their history, then the rows that no other revision needs are deleted.

Each step is a transaction of its own, and takes no lock for which writers of tags, payload lists or IOVs wait. After an
interruption, no revision has history whose rows are deleted: which rows are needed is computed from the committed revisions
that have history. Pruning again continues.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import starmap
from typing import Any, NamedTuple

from django.db import connection, transaction

from cdb_rest import named_sql
from cdb_rest.models import GlobalTagChange
from cdb_rest.rules.access import matches
from cdb_rest.writes.transactions import write

PRUNABLE = named_sql.load("prunable_revisions")
LISTS = named_sql.load("lists_with_history")
NEEDED = named_sql.load("needed_versions")
DELETE_AREAS = named_sql.load("delete_unneeded_areas")
DELETE_VERSIONS = named_sql.load("delete_unneeded_versions")
DELETE_MEMBERSHIPS = named_sql.load("delete_unneeded_memberships")
DELETE_TAGS = named_sql.load("delete_unneeded_tags")
BATCH_ROWS = 5000
# The needed versions of so many lists are computed together, because that reads all changes once.
BATCH_LISTS = 1000
BEFORE_ALL_NODES = -(2**31)

# Called with the name of a step, how much of it is done, and the total.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Which revisions are pruned: those that were superseded until `before`, or all but the newest `keep` of each tag.

    Exactly one of both is not None. `pattern` is a regular expression for the whole names of tags, also of deleted ones.
    """

    before: datetime | None = None
    keep: int | None = None
    pattern: str | None = None


@dataclass
class Pruned:
    """What was pruned: `revisions` of `tags` global tags, and the numbers of deleted rows by table.

    `areas` are rows of `PayloadIOVHistory`, `deleted_tags` those of `DeletedGlobalTag`.
    """

    tags: int = 0
    revisions: int = 0
    areas: int = 0
    versions: int = 0
    memberships: int = 0
    deleted_tags: int = 0


class _Needed(NamedTuple):
    """A row of needed_versions."""

    list_id: int
    versions: str
    numbers: str
    last_version: int
    last_number: int


def prune_history(
    *, limit: Limit, dry_run: bool = False, progress: Progress = lambda step, done, total: None, batch: int = BATCH_ROWS
) -> Pruned:
    """Drop the history of old revisions, and the rows that only they needed. Returns what was dropped.

    Rows that were not needed before are deleted, too. The current revision of an existing tag stays, and so do the revisions
    since a tag was frozen. With `dry_run`, everything is done in one transaction, which is rolled back.

    `batch` is the number of rows that a transaction considers.
    """
    if not dry_run:
        return _prune(limit, progress, batch)
    with transaction.atomic():
        pruned = _prune(limit, progress, batch)
        transaction.set_rollback(True)
    return pruned


def _prune(limit: Limit, progress: Progress, batch: int) -> Pruned:
    pruned = Pruned()
    _drop_revisions(limit, pruned, progress, batch)
    found = _fetch(LISTS)
    lists, with_areas = [list_id for list_id, _ in found], [list_id for list_id, has_areas in found if has_areas]
    # First the versions of all lists: those that shared rows of other lists do not need these any more then.
    for done, part in enumerate(_needed(lists), 1):
        values = {
            "list_ids": [needed.list_id for needed in part],
            "numbers": [needed.numbers for needed in part],
            "last_numbers": [needed.last_number for needed in part],
        }
        pruned.versions += _repeat(DELETE_VERSIONS, batch, values)
        progress("versions of payload lists", min(done * BATCH_LISTS, len(lists)), len(lists))
    for done, part in enumerate(_needed(with_areas), 1):
        pruned.areas += sum(_delete_areas(needed, batch) for needed in part)
        progress("rows of the past", min(done * BATCH_LISTS, len(with_areas)), len(with_areas))
    pruned.memberships = _repeat(DELETE_MEMBERSHIPS, batch)
    pruned.deleted_tags = _repeat(DELETE_TAGS, batch)
    return pruned


def _drop_revisions(limit: Limit, pruned: Pruned, progress: Progress, batch: int) -> None:
    names = None if limit.pattern is None else _matching_names(limit.pattern)
    found = _fetch(PRUNABLE, {"names": names, "before": limit.before, "keep": limit.keep})
    pruned.tags = len({tag for _, tag in found})
    ids = [change_id for change_id, _ in found]
    for begin in range(0, len(ids), batch):
        pruned.revisions += _drop_history(ids=ids[begin : begin + batch])
        progress("revisions", min(begin + batch, len(ids)), len(ids))


def _matching_names(pattern: str) -> list[str]:
    names = GlobalTagChange.objects.order_by("global_tag").values_list("global_tag", flat=True).distinct()
    return [name for name in names if matches(pattern, name)]


@write
def _drop_history(*, ids: Sequence[int]) -> int:
    """Note that revisions cannot be asked for any more. Returns how many could be asked for before.

    Revisions from which another write is copying at this moment are left out.
    """
    changes = GlobalTagChange.objects.filter(id__in=ids, has_history=True)
    locked = list(changes.select_for_update(skip_locked=True, no_key=True).values_list("id", flat=True))
    changes.filter(id__in=locked).update(has_history=False)
    return len(locked)


def _needed(lists: Sequence[int]) -> Iterator[list[_Needed]]:
    for begin in range(0, len(lists), BATCH_LISTS):
        yield list(starmap(_Needed, _fetch(NEEDED, {"list_ids": list(lists[begin : begin + BATCH_LISTS])})))


def _delete_areas(needed: _Needed, batch: int) -> int:
    total, node, start = 0, BEFORE_ALL_NODES, Decimal(-1)
    while found := _execute(
        statement=DELETE_AREAS, values=needed._asdict() | {"node": node, "comb_iov": start, "batch": batch}
    ):
        [(node, start, considered, deleted)] = found
        total += int(deleted)
        if considered < batch:
            break
    return total


def _repeat(statement: str, batch: int, values: dict[str, Any] | None = None) -> int:
    """Execute a statement that deletes up to `batch` rows until there are no more. Returns how many rows it deleted."""
    total = 0
    while True:
        [(deleted,)] = _execute(statement=statement, values=(values or {}) | {"batch": batch})
        total += int(deleted)
        if deleted < batch:
            return total


@write
def _execute(*, statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    return _fetch(statement, values)


def _fetch(statement: str, values: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
