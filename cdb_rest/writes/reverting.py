"""Write service that reverts a global tag to an earlier revision."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from django.db.models import Q
from django.db.models.functions import Now

from cdb_rest.history.contents import TagList, iovs_of, past_lists
from cdb_rest.models import PAYLOAD_COLUMNS, ChangeAction, GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.access import BY_THE_SYSTEM, All, Origin, Role
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.status import Action, check_permitted
from cdb_rest.rules.undoing import ListRow, first_difference
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.limits import check_closed
from cdb_rest.writes.locks import lock_global_tag, lock_past
from cdb_rest.writes.payload_lists import create_lists, detach
from cdb_rest.writes.replacing import Replacement
from cdb_rest.writes.rows import intervals_of
from cdb_rest.writes.sharing import stored_rows
from cdb_rest.writes.transactions import write


@dataclass(frozen=True)
class TypeReversion:
    """The change of a global tag for one payload type.

    `detached` and `attached` are the names of the payload lists that left the tag and came into it, None if none did.
    `is_created` says whether the attached list is new.
    `removed` and `added` are the numbers of IOVs that the change removed from the tag and added to it.
    """

    payload_type: str
    detached: str | None
    attached: str | None
    is_created: bool
    removed: int
    added: int


@dataclass(frozen=True)
class Reversion:
    """The result of a reversion: the changes for the payload types that differed, ordered by the name of the type.

    `revision` is the new revision of the tag, None if nothing differed. `status` is the one that the tag gets, None if that does
    not change.
    """

    revision: int | None
    types: list[TypeReversion]
    status: str | None = None


@write
def revert_global_tag(*, name: str, revision: int, origin: Origin = BY_THE_SYSTEM) -> Reversion:
    """Give a tag the payload lists and IOVs that it had at a revision, as one change.

    The status of the tag does not change. If the tag already has the contents of that revision, nothing changes, even if
    the tag is locked or frozen. A list of that revision that is attached to no tag now is attached again. One that was
    deleted, or is attached to another tag now, is replaced by a new list, unless the tag's present list of this type already
    has the same rows. Lists and IOVs that are not in that revision are detached, not deleted. Missing payload types are
    created.

    Raises `GlobalTagNotFoundError` (also if the tag was deleted by that revision), `RevisionNotFoundError`,
    `RevisionPrunedError`, `TagLockedError`, `TagFrozenError`, `ConcurrentChangeError`, or the errors of missing
    permissions.
    """
    origin.principal.require(Role.MANAGER, name, All.ALL)
    tag = lock_global_tag(name)
    lists = past_lists(lock_past(name, AsOf(revision=revision)))
    changes = Changes()
    types = []
    for pair in lock_pairs(tag, lists):
        # Planned and applied one after the other, because the rows of one list are many already.
        plan = plan_type(pair)
        if plan is None:
            continue
        check_permitted(tag=tag.name, status=tag.status.name, action=Action.REVERT)
        plan.check_closed(tag)
        types.append(plan.apply(tag, changes))
    return Reversion(changes.record(ChangeAction.REVERT, origin).get(tag.name), types)


@dataclass(frozen=True)
class TypePair:
    """The payload list that the tag has now, and the one that it had then, of one payload type; None for none.

    `target` is the list of then as it is now, None if it is deleted or attached to another tag.
    """

    payload_type: str
    present: PayloadList | None
    past: TagList | None
    target: PayloadList | None


def lock_pairs(tag: GlobalTag, lists: Sequence[TagList]) -> list[TypePair]:
    """The lists of now and then by payload type, locked, except those of other tags."""
    ids = [payload_list.id for payload_list in lists]
    found = PayloadList.objects.filter(Q(global_tag=tag) | Q(id__in=ids, global_tag=None)).order_by("id")
    locked = {item.id: item for item in found.select_for_update(of=("self",)).select_related("payload_type")}
    past = {
        (
            locked[payload_list.id].payload_type.name if payload_list.id in locked else payload_list.payload_type
        ): payload_list
        for payload_list in lists
    }
    present = {
        payload_list.payload_type.name: payload_list
        for payload_list in locked.values()
        if payload_list.global_tag_id == tag.id
    }
    return [
        TypePair(kind, present.get(kind), past.get(kind), locked.get(past[kind].id) if kind in past else None)
        for kind in sorted(past.keys() | present.keys())
    ]


payload = attrgetter(*PAYLOAD_COLUMNS.values())


def list_rows(iovs: Iterable[PayloadIOV]) -> list[ListRow]:
    """Rows of a payload list for the functions of `cdb_rest.rules.undoing`."""
    found = list(iovs)
    return list(map(ListRow, intervals_of(found), map(payload, found), found))


def plan_type(pair: TypePair) -> "TypePlan | None":
    """The change for a payload type, None if there is none. The rows of an unchanged list are not read."""
    past, present, target = pair.past, pair.present, pair.target
    # A list of then that cannot come back may have been replaced already, by an earlier reversion.
    if past is not None and target is None and present is not None and not _past_rows(present, past).differ:
        return None
    rows = None
    if past is not None and (target is None or target.version != past.version):
        rows = _past_rows(target, past)
    plan = TypePlan(pair, rows)
    return plan if plan.replaces or (rows is not None and rows.differ) else None


def _past_rows(target: PayloadList | None, past: TagList) -> Replacement:
    """The rows of a list of then, to become those of `target`."""
    # The ids of rows that the list shared are those of another list.
    own = past.rows_list_id == past.id
    return Replacement(target, lambda: (columns if own else columns | {"id": None} for columns in iovs_of([past])))


@dataclass(frozen=True)
class TypePlan:
    """The change for a payload type. `rows` are those of then, None if the target has them or if there was no list."""

    pair: TypePair
    rows: Replacement | None

    @property
    def replaces(self) -> bool:
        """Whether the list of the tag changes, and not only the rows of the list."""
        return self.pair.present is None or self.pair.present is not self.pair.target

    def contents(self) -> tuple[list[ListRow], list[ListRow]]:
        """The rows of this payload type that the tag has now, and those that it gets."""
        present, target = self.pair.present, self.pair.target
        before: Collection[PayloadIOV] = []
        after: Collection[PayloadIOV] = []
        if self.rows is not None and not self.replaces:
            before = self.rows.stored
        elif present is not None:
            before = stored_rows(present)
        if self.rows is not None:
            after = self.rows.wanted
        elif target and self.pair.past is not None:
            after = stored_rows(target)
        return list_rows(before), list_rows(after)

    def check_closed(self, tag: GlobalTag) -> None:
        """Raise `TagLimitError` if something else would be valid at a moment before `closed_until` of the tag."""
        since = None if tag.closed is None else first_difference(*self.contents())
        if since is not None:
            check_closed(tag, since)

    def apply(self, tag: GlobalTag, changes: Changes) -> TypeReversion:
        """Store the change, and add it to `changes`."""
        present, target = self.pair.present, self.pair.target
        if self.replaces and present is not None:
            changes.detach(present)
            detach([present], tag)
        if target is None and self.pair.past is not None:
            payload_type, _ = PayloadType.objects.get_or_create(name=self.pair.payload_type)
            [target] = create_lists([(payload_type, None)])
        report = self._report(target)
        if self.rows is not None and self.rows.differ and target is not None:
            # A list that is not in the tag yet comes with its rows of then, so these changes do not count.
            self.rows.apply(target, changes)
        if self.replaces and target is not None:
            target.iov_count = report.added
            changes.attach(target, tag.id)
            PayloadList.objects.filter(id=target.id).update(global_tag=tag, left_tag=None, updated=Now())
        return report

    def _report(self, target: PayloadList | None) -> TypeReversion:
        pair, rows = self.pair, self.rows
        is_created = pair.past is not None and pair.target is None
        if not self.replaces:
            removed, added = (rows.removed, rows.added) if rows is not None else (0, 0)
            return TypeReversion(pair.payload_type, None, None, is_created, removed, added)
        return TypeReversion(
            pair.payload_type,
            detached=pair.present.name if pair.present else None,
            attached=target.name if target else None,
            is_created=is_created,
            removed=pair.present.iov_count if pair.present else 0,
            added=rows.count if rows is not None else target.iov_count if target else 0,
        )
