"""Insertion of payloads into global tags by the names of tag and payload type, in one step."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from cdb_rest.models import ChangeAction, GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.access import BY_THE_SYSTEM, Origin
from cdb_rest.rules.errors import CdbError, GlobalTagNotFoundError, InvalidInputError, PayloadTypeNotFoundError
from cdb_rest.rules.status import Action, check_permitted, role_for
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.locks import lock_global_tags_shared
from cdb_rest.writes.payload_lists import create_lists
from cdb_rest.writes.placing import Placement, Plan
from cdb_rest.writes.rows import check_interval, refusals_of, refused_rows
from cdb_rest.writes.transactions import write

# The members of a row that are not columns of the IOV.
NO_COLUMNS = {"global_tag", "payload_type", "since_only"}


@dataclass(frozen=True)
class Insertion:
    """The result of an insertion.

    - `placements`: the inserted IOVs, one for each row, with the rows that they cut.
    - `created_lists`: the payload lists that were created.
    - `revisions`: the new revisions by tag name; empty if nothing changed.

    After a dry run, the new IOVs have no ids, the created lists do not exist any more, and there are no revisions.
    """

    placements: list[Placement]
    created_lists: list[PayloadList]
    revisions: dict[str, int]


@dataclass(frozen=True)
class Target:
    """An IOV with the global tag and the payload type of the list into which it is inserted."""

    iov: PayloadIOV
    tag: GlobalTag
    payload_type: PayloadType

    @property
    def key(self) -> tuple[int, int]:
        """The ids of tag and type, which identify the payload list."""
        return self.tag.id, self.payload_type.id


@write
def insert_payloads(*, rows: list[dict[str, Any]], dry_run: bool = False, origin: Origin = BY_THE_SYSTEM) -> Insertion:
    """Insert IOVs in the order given, all or none. Missing payload lists are created. A dry run stores nothing.

    Each row has the names `global_tag` and `payload_type`, the columns of `PayloadIOV`, and `since_only`. If this is
    true, the end must be open, and the IOV is valid only up to the next start in its list. If it is false, an open IOV
    detaches all later IOVs of its list. Unlike in a bulk insert, a row may have the start of an existing IOV or of an
    earlier row. If the same payload is valid in the whole interval of a row already, the row changes nothing, whatever the
    status of the tag is; its placement has the `holder`.

    Raises the error of the first invalid row; its `rows` describes the first `ROWS_NAMED` invalid rows. The errors are
    `GlobalTagNotFoundError`, `PayloadTypeNotFoundError`, `TagFrozenError`, `InvalidInputError` (empty interval),
    `OverlapError`, and those of missing permissions. Also raises `ConcurrentChangeError`.
    """
    targets, refusals = _targets(rows, origin)
    changes = Changes()
    lists, created = _lock_or_create_lists(list(targets.values()), changes)
    placements = [
        Placement(target.iov, lists[target.key], since_only=rows[number]["since_only"], number=number)
        for number, target in targets.items()
    ]
    plan = Plan(placements)
    if refusals or plan.refusals:
        raise refused_rows([*refusals, *plan.refusals], len(rows))
    if dry_run:
        transaction.set_rollback(True)
        return Insertion(placements, created, {})
    if plan.changes_nothing:
        return Insertion(placements, created, {})
    plan.apply(changes)
    return Insertion(placements, created, changes.record(ChangeAction.INSERT, origin))


def _check_interval(iov: PayloadIOV) -> None:
    """Like `check_interval`, but the error names the field `until`."""
    try:
        check_interval(iov)
    except InvalidInputError as error:
        raise InvalidInputError(str(error), {"until": [str(error)]}) from error


def _targets(rows: list[dict[str, Any]], origin: Origin) -> tuple[dict[int, Target], list[tuple[int, CdbError]]]:
    """The target of each valid row by row number, and the errors of the other rows. Takes shared locks on the tags."""
    ids = GlobalTag.objects.filter(name__in={row["global_tag"] for row in rows}).values_list("id", flat=True)
    tags = {tag.name: tag for tag in lock_global_tags_shared(list(ids)).values()}
    types = {kind.name: kind for kind in PayloadType.objects.filter(name__in={row["payload_type"] for row in rows})}
    existing = set(
        PayloadList.objects.filter(
            global_tag__in=ids, payload_type__in=[kind.id for kind in types.values()]
        ).values_list("global_tag", "payload_type")
    )
    targets: dict[int, Target] = {}

    def read(numbered: tuple[int, dict[str, Any]]) -> None:
        number, row = numbered
        if row["global_tag"] not in tags:
            raise GlobalTagNotFoundError(row["global_tag"])
        if row["payload_type"] not in types:
            raise PayloadTypeNotFoundError(row["payload_type"])
        tag, payload_type = tags[row["global_tag"]], types[row["payload_type"]]
        origin.principal.require(role_for(Action.ADD_IOV, tag.status.name), tag.name, payload_type.name)
        if (tag.id, payload_type.id) not in existing:
            check_permitted(tag=tag.name, status=tag.status.name, action=Action.ADD_LIST)
        iov = PayloadIOV(**{name: value for name, value in row.items() if name not in NO_COLUMNS})
        _check_interval(iov)
        targets[number] = Target(iov, tag, payload_type)

    refusals = refusals_of(read, list(enumerate(rows)))
    return targets, refusals


def _lock_or_create_lists(
    targets: list[Target], changes: Changes
) -> tuple[dict[tuple[int, int], PayloadList], list[PayloadList]]:
    """The payload list of each target by its key, locked; and the lists that were created, in the order of their keys."""
    wanted = {target.key: target for target in targets}
    tag_ids, type_ids = {tag_id for tag_id, _ in wanted}, {type_id for _, type_id in wanted}
    candidates = PayloadList.objects.filter(global_tag__in=tag_ids, payload_type__in=type_ids)
    ids = [
        list_id for list_id, *key in candidates.values_list("id", "global_tag", "payload_type") if tuple(key) in wanted
    ]
    locked = PayloadList.objects.filter(id__in=ids).order_by("id").select_for_update(no_key=True)
    lists = {(found.global_tag_id, found.payload_type_id): found for found in locked if found.global_tag_id is not None}
    for key, found in lists.items():
        found.global_tag, found.payload_type = wanted[key].tag, wanted[key].payload_type
    # Concurrent requests create the same lists in the same order. All but the first fail at the unique constraint.
    missing = [wanted[key] for key in sorted(wanted.keys() - lists.keys())]
    created = create_lists([(target.payload_type, target.tag) for target in missing]) if missing else []
    for target, payload_list in zip(missing, created, strict=True):
        lists[target.key] = payload_list
        changes.attach(payload_list, target.tag.id)
    return lists, created
