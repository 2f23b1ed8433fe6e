"""Import of a CSV file, as an export writes it, into any global tag, by the rules of bulk insertion."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from django.db import transaction

from cdb_rest.models import ChangeAction, GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.access import BY_THE_SYSTEM, Origin
from cdb_rest.rules.errors import GlobalTagNotFoundError
from cdb_rest.rules.status import Action, Status, is_protected
from cdb_rest.writes import import_file
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.global_tags import add_global_tag
from cdb_rest.writes.locks import check_tag, lock_global_tag, lock_payload_lists
from cdb_rest.writes.payload_lists import create_lists
from cdb_rest.writes.placing import Placement, Plan
from cdb_rest.writes.rows import interval_of
from cdb_rest.writes.transactions import write

# Rows that the interval rule places in one step; limits the memory.
ROWS_AT_ONCE = 50_000
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ImportResult:
    """The result of an import: whether it created the tag, and how many types, lists and IOVs it created.

    After a dry run, these are the values that the import would have had.
    """

    created: bool
    payload_types: int
    payload_lists: int
    payload_iovs: int


@write
def import_payload_iovs(
    *, file: BinaryIO, global_tag: str, dry_run: bool = False, progress: Progress, origin: Origin = BY_THE_SYSTEM
) -> ImportResult:
    """Insert all rows of a CSV file into a tag, or none. A dry run stores nothing.

    The file must be seekable. It is read from its beginning, and again if `write` retries the import. A missing tag is
    created with the status `unlocked`. Missing payload types and payload lists are created, too. Permissions are
    checked only for an existing tag. Other writers of the tag wait until the import ends.

    The rows of each list are inserted by descending start, by the rules of bulk insertion. A row with an open end is
    valid up to the next start in the list. Before the insertion, ends are trimmed: a row with an end is valid at most
    up to the next later start of the same payload type in the file.

    `progress` gets the number of rows that were inserted so far, and the number of rows of the file. If the import is
    retried, the count begins again.

    The change log gets an entry for a created tag, and one for the import.

    Raises `InvalidInputError` for an invalid file and `OverlapError` for a rejected row; their messages name the line,
    if it is known. Raises `TagFrozenError`, `NameTakenError` (a tag or type was created at the
    same moment), `ConcurrentChangeError`, `DatabaseUnavailableError`, or those of missing permissions.
    """
    found = import_file.load(file)
    total = sum(found.values())
    tag, created = _lock_or_create_tag(global_tag, origin)
    types, new_types = _types(list(found))
    changes = Changes()
    lists, new_lists = _lists(tag, types, changes)
    done = 0
    for name, count in found.items():
        payload_list = lists[name]
        if _is_empty(payload_list):
            # There are no rows to cut, so one statement is enough.
            import_file.insert_into_empty_list(name, payload_list)
            changes.of_list(payload_list, added=count)
            done += count
            progress(done, total)
        else:
            for inserted in _attach(tag, payload_list, name, changes):
                done += inserted
                progress(done, total)
    changes.record(ChangeAction.BULK, origin)
    if dry_run:
        transaction.set_rollback(True)
    return ImportResult(created, new_types, len(new_lists), total)


def _lock_or_create_tag(name: str, origin: Origin) -> tuple[GlobalTag, bool]:
    try:
        tag = lock_global_tag(name)
    except GlobalTagNotFoundError:
        tag, changes = add_global_tag(name=name, status=Status.UNLOCKED, author=origin.actor, description="")
        changes.record(ChangeAction.CREATE, origin)
        return tag, True
    check_tag(tag, Action.ADD_IOV, origin)
    return tag, False


def _types(names: list[str]) -> tuple[list[PayloadType], int]:
    """Find or create the payload types. Returns them in the order of `names`, and how many of them were created."""
    types = {payload_type.name: payload_type for payload_type in PayloadType.objects.filter(name__in=names)}
    new = PayloadType.objects.bulk_create(PayloadType(name=name) for name in names if name not in types)
    types |= {created.name: created for created in new}
    return [types[name] for name in names], len(new)


def _lists(
    tag: GlobalTag, types: list[PayloadType], changes: Changes
) -> tuple[dict[str, PayloadList], list[PayloadList]]:
    """Find and lock, or create, the tag's payload lists. Returns all by type name, and those that were created."""
    found = PayloadList.objects.filter(global_tag=tag, payload_type__in=types).values_list("name", flat=True)
    lists = {item.payload_type.name: item for item in lock_payload_lists(list(found)).values()}
    new = create_lists([(kind, tag) for kind in types if kind.name not in lists])
    for payload_list in new:
        changes.attach(payload_list, tag.id)
    return lists | {created.payload_type.name: created for created in new}, new


def _is_empty(payload_list: PayloadList) -> bool:
    return not payload_list.payload_iovs.exists()


def _attach(tag: GlobalTag, payload_list: PayloadList, payload_type: str, changes: Changes) -> Iterator[int]:
    """Attach the rows of a type to the tag's list by the interval rule, in batches. Yields the size of each batch."""
    if is_protected(tag.status.name):
        # Check all rows before inserting any. Otherwise the rows of one batch would be protected against the next batch,
        # while the rows of one bulk request are not protected against each other.
        for rows in import_file.newest_first(payload_type, ROWS_AT_ONCE):
            _plan(rows, payload_list, protecting=True)
    for rows in import_file.newest_first(payload_type, ROWS_AT_ONCE):
        _plan(rows, payload_list, protecting=False).apply(changes)
        yield len(rows)


def _plan(rows: list[dict[str, Any]], payload_list: PayloadList, *, protecting: bool) -> Plan:
    """The plan for these rows. Raises `OverlapError`, which names one of the lines that are rejected."""
    plan = Plan([_placement(row, payload_list) for row in rows], equal_starts=False, protecting=protecting)
    if plan.refusals:
        number, error = min(plan.refusals, key=lambda refusal: refusal[0])
        raise type(error)(f"Line {import_file.line_of(number)}: {error}") from error
    return plan


def _placement(row: dict[str, Any], payload_list: PayloadList) -> Placement:
    number = row.pop("number")
    iov = PayloadIOV(**row, payload_list=payload_list)
    return Placement(iov, payload_list, since_only=interval_of(iov).is_open, number=number)
