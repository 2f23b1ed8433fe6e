"""Inserting payloads into global tags by the names of tag and type, in one step."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from cdb_rest.domain.errors import CdbError, GlobalTagNotFoundError, InvalidInputError, PayloadTypeNotFoundError
from cdb_rest.domain.origin import UNKNOWN, Origin
from cdb_rest.domain.status import Action
from cdb_rest.models import ChangeAction, GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.services.change_log import Changes
from cdb_rest.services.intervals import check_interval
from cdb_rest.services.locks import check_tag, hold_global_tags
from cdb_rest.services.payload_lists import create_lists
from cdb_rest.services.placing import Placement, Plan
from cdb_rest.services.row_errors import refusals_of, refused_rows
from cdb_rest.services.transactions import write

# What a row has besides the columns of the IOV.
NO_COLUMNS = {"global_tag", "payload_type", "since_only"}


@dataclass(frozen=True)
class Insertion:
    """What was inserted, row by row, with what it cut; lists that were made for it; revisions by name of the tag.

    Of a dry run the new objects have no ids, and there are no revisions.
    """

    placements: list[Placement]
    created_lists: list[PayloadList]
    revisions: dict[str, int]


@dataclass(frozen=True)
class Target:
    """Where an IOV goes."""

    iov: PayloadIOV
    tag: GlobalTag
    payload_type: PayloadType

    @property
    def key(self) -> tuple[int, int]:
        """The ids, which say which list it is."""
        return self.tag.id, self.payload_type.id


@write
def insert_payloads(*, rows: list[dict[str, Any]], dry_run: bool = False, origin: Origin = UNKNOWN) -> Insertion:
    """Insert IOVs in the order given, all or none, and make the payload lists that the tags lack.

    Each row has names `global_tag` and `payload_type`, the columns of `PayloadIOV`, and `since_only`: whether it is valid up
    to the next start of its list, where the interval rule would have it go on to its end. A dry run stores nothing.

    Raises, with every wrong row, the first of `GlobalTagNotFoundError`, `PayloadTypeNotFoundError`, `TagFrozenError`,
    `InvalidInputError` (an empty interval) and `OverlapError`.
    """
    targets, refusals = _targets(rows)
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
    plan.apply(changes)
    return Insertion(placements, created, changes.record(ChangeAction.INSERT, origin))


def _check_interval(iov: PayloadIOV) -> None:
    """As `check_interval`, with the name that the end has here."""
    try:
        check_interval(iov)
    except InvalidInputError as error:
        raise InvalidInputError(str(error), {"until": [str(error)]}) from error


def _targets(rows: list[dict[str, Any]]) -> tuple[dict[int, Target], list[tuple[int, CdbError]]]:
    """The IOV, tag and type of each row by its number; the tags are held. And the rows that are wrong by themselves."""
    ids = GlobalTag.objects.filter(name__in={row["global_tag"] for row in rows}).values_list("id", flat=True)
    tags = {tag.name: tag for tag in hold_global_tags(list(ids)).values()}
    types = {kind.name: kind for kind in PayloadType.objects.filter(name__in={row["payload_type"] for row in rows})}
    targets: dict[int, Target] = {}

    def read(numbered: tuple[int, dict[str, Any]]) -> None:
        number, row = numbered
        if row["global_tag"] not in tags:
            raise GlobalTagNotFoundError(row["global_tag"])
        if row["payload_type"] not in types:
            raise PayloadTypeNotFoundError(row["payload_type"])
        check_tag(tags[row["global_tag"]], Action.ADD_IOV)
        iov = PayloadIOV(**{name: value for name, value in row.items() if name not in NO_COLUMNS})
        _check_interval(iov)
        targets[number] = Target(iov, tags[row["global_tag"]], types[row["payload_type"]])

    refusals = refusals_of(read, list(enumerate(rows)))
    return targets, refusals


def _lock_or_create_lists(
    targets: list[Target], changes: Changes
) -> tuple[dict[tuple[int, int], PayloadList], list[PayloadList]]:
    """The list of each target by its key, locked; and those that had to be made, in the order of their keys."""
    wanted = {target.key: target for target in targets}
    tag_ids, type_ids = {tag_id for tag_id, _ in wanted}, {type_id for _, type_id in wanted}
    near = PayloadList.objects.filter(global_tag__in=tag_ids, payload_type__in=type_ids)
    ids = [list_id for list_id, *key in near.values_list("id", "global_tag", "payload_type") if tuple(key) in wanted]
    locked = PayloadList.objects.filter(id__in=ids).order_by("id").select_for_update(no_key=True)
    lists = {(found.global_tag_id, found.payload_type_id): found for found in locked if found.global_tag_id is not None}
    for key, found in lists.items():
        found.global_tag, found.payload_type = wanted[key].tag, wanted[key].payload_type
    # Whoever makes the same lists at the same time does it in the same order, and loses at the constraint.
    missing = [wanted[key] for key in sorted(wanted.keys() - lists.keys())]
    created = create_lists([(target.payload_type, target.tag) for target in missing]) if missing else []
    for target, made in zip(missing, created, strict=True):
        lists[target.key] = made
        changes.add_list(made)
    return lists, created
