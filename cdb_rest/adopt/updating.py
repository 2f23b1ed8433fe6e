"""Copies of all tags of a database of nopayloaddb, and its later changes, taken over as recorded changes.

What has changed is found by comparing hashes of the rows of each list, because nopayloaddb changes rows without changing their
times. A global tag that was changed here since its last adoption is a conflict, and is left alone.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

from cdb_rest import named_sql
from cdb_rest.adopt.contents import (
    SourceList,
    SourceTag,
    Summary,
    read_lists,
    read_tags,
    summaries,
)
from cdb_rest.adopt.copying import (
    BY_ADOPT,
    Copy,
    add_lists,
    check_decided,
    copy_types,
    create_tag,
    insert_loaded,
    load,
    load_detached,
    load_rows,
    note_lists,
    origin_of,
)
from cdb_rest.adopt.source import Snapshot, SourceError
from cdb_rest.history.contents import stream_rows
from cdb_rest.models import (
    AdoptedList,
    AdoptedTag,
    Adoption,
    ChangeAction,
    GlobalTag,
    GlobalTagStatus,
    PayloadIOV,
    PayloadList,
)
from cdb_rest.rules.errors import CdbError, DatabaseUnavailableError, InvalidInputError, quoted
from cdb_rest.rules.status import Status
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.global_tags import change_status, delete_global_tag
from cdb_rest.writes.history import supersede_lists
from cdb_rest.writes.locks import lock_global_tags
from cdb_rest.writes.payload_lists import detach
from cdb_rest.writes.replacing import Replacement
from cdb_rest.writes.restorations import check_not_retired
from cdb_rest.writes.sharing import unshare
from cdb_rest.writes.transactions import write

ROWS = named_sql.load("adopted_rows")
NEAR_DIFFERENCES = named_sql.load("rows_near_differences")
TAKE_OVER_TIMES = named_sql.load("take_over_times")
UPDATE_DETACHED = named_sql.load("update_detached_rows")
DELETE_LISTS = named_sql.load("delete_payload_lists")


@dataclass
class Updated:
    """The global tags that an update has added, changed and deleted, and why others were left alone, by name."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    conflicts: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.deleted or self.conflicts)


class _ConflictError(Exception):
    """A tag cannot follow the source. The message says why."""


def copy_tags(copy: Copy, only: Sequence[str]) -> list[str]:
    """Copy the tags that are not copied yet, all or `only` these, and without `only` what is in no tag. Returns their names here.

    Raises `SourceError` or `InvalidInputError`.
    """
    tags = copy.source.read(read_tags)
    done = set(copy.adoption.tags.values_list("source_id", flat=True))
    if not only:
        copy.source.read(partial(copy_types, copy))
    copied = []
    for tag in tags:
        if (not only or tag.name in only) and tag.id not in done:
            try:
                copy.source.read(partial(add_tag, copy, tag, {}))
            except _ConflictError as error:
                raise InvalidInputError(f"global tag {quoted(tag.name)}: {error}") from error
            copied.append(copy.decisions.name("global tag", tag.name))
    if not only and copy.adoption.finished is None:
        copy.source.read(partial(_finish, copy))
        copy.adoption.refresh_from_db()
    return copied


def update(copy: Copy, only: Collection[str] = ()) -> Updated:
    """Take over what has changed in the source, in all tags or `only` those with these names there.

    Raises `SourceError`, or the errors of a database that cannot be written to.
    """
    result = Updated()
    tags = {tag.id: tag for tag in copy.source.read(read_tags)}
    adopted = {item.source_id: item for item in copy.adoption.tags.order_by("source_id")}
    if only:
        tags = {tag.id: tag for tag in tags.values() if tag.name in only}
        adopted = {item.source_id: item for item in adopted.values() if item.source_name in only}
    # Only then all that has an id of the source came from there.
    is_whole = copy.adoption.finished is not None and copy.adoption.keeps_ids and not only
    others: dict[int, str | None] = {}

    def attempt(name: str, done: list[str], change: Callable[[Snapshot], bool]) -> None:
        try:
            if copy.source.read(change):
                here = copy.decisions.name("global tag", name)
                done.append(name if here == name else f"{name} (here {here})")
        except (SourceError, DatabaseUnavailableError):
            raise
        except (_ConflictError, CdbError) as error:
            result.conflicts[name] = str(error)

    for source_id in sorted(adopted.keys() - tags.keys()):
        attempt(adopted[source_id].source_name, result.deleted, partial(_delete_tag, copy, adopted[source_id]))
    if is_whole:
        attempt("payload types", [], partial(copy_types, copy))
    for source_id, tag in tags.items():
        if source_id in adopted:
            attempt(tag.name, result.changed, partial(update_tag, copy, tag, adopted[source_id], others))
        elif is_whole:
            attempt(tag.name, result.added, partial(add_tag, copy, tag, others))
    if is_whole and copy.keeps_detached:
        kept = [copy.decisions.name("global tag", name) for name in result.conflicts]
        attempt("what is in no tag", [], partial(update_detached, copy, others, kept))
    return result


@write
def add_tag(copy: Copy, tag: SourceTag, others: dict[int, str | None], snapshot: Snapshot) -> bool:
    """Copy a tag with its lists and their rows, as one recorded change. Lists that were in other tags at their adoption move.

    `others` gets the lists that have rows which are detached by decisions, with the name of the tag. Raises `_ConflictError`
    or `InvalidInputError`.
    """
    # The progress of new rows is that of their copy.
    lists, found = _read_lists(copy, tag, snapshot, lambda count: None)
    created = create_tag(copy, tag)
    others.update(_with_detached(found, created.name))
    changes = Changes()
    update = _Lists(copy, snapshot, created, found, changes)
    update.apply(lists)
    changes.of_tag(created.id).source = origin_of(copy, snapshot, tag, lists, found)
    AdoptedTag.objects.create(
        adoption=copy.adoption,
        source_id=tag.id,
        source_name=tag.name[:80],
        tag_id=created.id,
        revision=0,
        snapshot=snapshot.name,
    )
    update.record(tag)
    return True


def _read_lists(
    copy: Copy, tag: SourceTag, snapshot: Snapshot, progress: Callable[[int], object]
) -> tuple[list[SourceList], dict[int, Summary]]:
    """The lists of a tag that are taken over, with their rows. Raises `InvalidInputError` if a decision is missing."""
    lists = read_lists(snapshot, tag.id)
    found = summaries(snapshot, lists, copy.decisions, progress)
    check_decided(copy, lists, found)
    return [item for item in lists if item.stays or copy.keeps_detached], found


def _with_detached(found: dict[int, Summary], tag: str | None) -> dict[int, str | None]:
    return {item.list_id: tag for item in found.values() if item.count != item.attached}


@write
def _delete_tag(copy: Copy, adopted: AdoptedTag, snapshot: Snapshot) -> bool:
    """Delete the copy of a tag that the source has deleted, without the lists that the source still has."""
    tag = _lock(copy, adopted)
    if tag is not None:
        if tag.status.name == Status.FROZEN:
            raise _ConflictError("it was deleted in the source, and is frozen here")
        here = dict(
            copy.adoption.lists.filter(list_id__in=tag.payload_lists.values("id")).values_list("source_id", "list_id")
        )
        left = [here[item.id] for item in read_lists(snapshot) if item.id in here]
        changes = Changes()
        changes.of_tag(tag.id)
        for payload_list in PayloadList.objects.filter(id__in=left).order_by("id").select_for_update():
            changes.detach(payload_list)
            detach([payload_list], tag)
        if left:
            changes.record(ChangeAction.ADOPT, BY_ADOPT)
        if tag.status.name != Status.UNLOCKED:
            change_status(name=tag.name, status=Status.UNLOCKED, origin=BY_ADOPT)
        delete_global_tag(name=tag.name, origin=BY_ADOPT)
        copy.adoption.lists.filter(list_id__in=set(here.values()).difference(left)).delete()
    adopted.delete()
    return True


def _lock(copy: Copy, adopted: AdoptedTag) -> GlobalTag | None:
    """The copy of a tag, locked; None if it was deleted here. Raises `_ConflictError` if it was changed here."""
    tag = lock_global_tags({adopted.tag_id}).get(adopted.tag_id)
    if adopted.source_name in copy.overwrites:
        return tag
    if tag is not None and tag.revision != AdoptedTag.objects.get(id=adopted.id).revision:
        raise _ConflictError("it was changed here since its last adoption")
    return tag


@write
def update_tag(
    copy: Copy, tag: SourceTag, adopted: AdoptedTag, others: dict[int, str | None], snapshot: Snapshot
) -> bool:
    """Give the copy of a tag the contents of the source. Returns whether anything changed.

    `others` gets the lists that have rows which are detached by decisions, with the name of the tag. Raises `_ConflictError`.
    """
    here = _lock(copy, adopted)
    if here is None and tag.name in copy.overwrites:
        adopted.delete()
        return add_tag(copy, tag, others, snapshot)
    if here is None:
        raise _ConflictError("it was deleted here")
    if tag.name != adopted.source_name:
        raise _ConflictError(f"its name in the source is {tag.name} now")
    lists, found = _read_lists(copy, tag, snapshot, partial(copy.progress, here.name))
    others.update(_with_detached(found, here.name))
    changes = Changes()
    is_other = _update_attributes(copy, tag, here, changes)
    update = _Lists(copy, snapshot, here, found, changes)
    if not update.apply(lists) and not is_other:
        # It may have been changed here, and changed back.
        AdoptedTag.objects.filter(id=adopted.id).update(revision=here.revision)
        return False
    if here.status.name == Status.FROZEN:
        raise _ConflictError("it was changed in the source, and is frozen here")
    changes.of_tag(here.id).source = origin_of(copy, snapshot, tag, lists, found)
    AdoptedTag.objects.filter(id=adopted.id).update(snapshot=snapshot.name)
    update.record(tag)
    return True


def _update_attributes(copy: Copy, tag: SourceTag, here: GlobalTag, changes: Changes) -> bool:
    status = copy.decisions.status(tag.status)
    if status is None:
        raise _ConflictError(f"the source needs the decision --map-status {tag.status}=…")
    wanted = (tag.author[:80], tag.description[:255], status, tag.updated)
    if wanted == (here.author, here.description, here.status.name, here.updated):
        return False
    if status == Status.FROZEN != here.status.name:
        check_not_retired(here.name)
    GlobalTag.objects.filter(id=here.id).update(
        author=wanted[0], description=wanted[1], status=GlobalTagStatus.objects.get(name=status)
    )
    changes.of_tag(here.id)
    return True


class _Lists:
    """The lists of a tag (None: those without a tag) of the source, which the copy of the tag gets."""

    def __init__(
        self, copy: Copy, snapshot: Snapshot, tag: GlobalTag | None, found: dict[int, Summary], changes: Changes
    ) -> None:
        self.copy, self.snapshot, self.tag, self.found, self.changes = copy, snapshot, tag, found, changes
        names = copy.adoption.tags.filter(tag_id=tag.id).values_list("source_name", flat=True) if tag else []
        self.overwrites = any(name in copy.overwrites for name in names)
        self.made: dict[int, PayloadList] = {}
        self.changed: dict[int, PayloadList] = {}

    def apply(self, lists: Sequence[SourceList]) -> bool:
        """Store the differences, and add them to the changes. Returns whether there are any."""
        ids = [item.id for item in lists]
        known = {item.source_id: item for item in self.copy.adoption.lists.filter(source_id__in=ids)}
        present = Q(id__in=[item.list_id for item in known.values()])
        if self.tag is not None:
            present |= Q(global_tag=self.tag)
        wanted = PayloadList.objects.filter(present).select_related("payload_type").order_by("id")
        locked = {item.id: item for item in wanted.select_for_update(of=("self",))}
        self._check_owners({item.global_tag_id for item in locked.values()})
        staying = {known[item.id].list_id for item in lists if item.id in known and item.stays}
        leaving = [item for item in locked.values() if self._is_here(item) and item.id not in staying]
        if self.tag is not None and leaving:
            for payload_list in leaving:
                self.changes.detach(payload_list)
            detach(leaving, self.tag)
            for payload_list in leaving:
                # Its time is that of the source, also if another tag gets it.
                PayloadList.objects.filter(id=payload_list.id).update(updated=payload_list.updated)
                payload_list.refresh_from_db(fields=["updated", "global_tag"])
        new = []
        for item in lists:
            if item.id not in known or known[item.id].list_id not in locked:
                new.append(item)
                continue
            payload_list = locked[known[item.id].list_id]
            if payload_list.version != known[item.id].version and not self.overwrites:
                raise _ConflictError(f"payload list {payload_list.name} was changed here since its last adoption")
            here = payload_list.payload_type.name
            if here != self.copy.decisions.name("payload type", item.payload_type or ""):
                raise _ConflictError(
                    f"payload list {item.name} has the payload type {item.payload_type} in the source now, and {here} here"
                )
            self._update_list(item, known[item.id], payload_list)
        if new:
            self.made = add_lists(self.copy, self.snapshot, new, self.found, self.tag, self.changes)
        return bool(leaving or self.made or self.changed)

    def _check_owners(self, tag_ids: Collection[int | None]) -> None:
        """Raise `_ConflictError` if lists are in another tag here that must not lose them."""
        adopted = dict(self.copy.adoption.tags.values_list("tag_id", "revision"))
        for owner in GlobalTag.objects.filter(id__in=[tag_id for tag_id in tag_ids if tag_id is not None]):
            if self.tag is not None and owner.id == self.tag.id:
                continue
            if owner.status.name == Status.FROZEN:
                raise _ConflictError(f"it has a payload list of {owner.name} in the source, which is frozen here")
            if owner.revision != adopted.get(owner.id):
                raise _ConflictError(f"it has a payload list of {owner.name} in the source, which was changed here")

    def _is_here(self, payload_list: PayloadList) -> bool:
        return self.tag is not None and payload_list.global_tag_id == self.tag.id

    def _update_list(self, item: SourceList, known: AdoptedList, payload_list: PayloadList) -> None:
        adopted = (known.version, known.rows_hash, known.iov_count)
        differs = adopted != (payload_list.version, self.found[item.id].rows_hash, self.found[item.id].attached)
        comes = item.stays and not self._is_here(payload_list)
        if differs:
            self._replace_rows(item, payload_list)
        if comes and self.tag is not None:
            self.changes.detach(payload_list)
            PayloadList.objects.filter(id=payload_list.id).update(global_tag=self.tag, left_tag=None)
            payload_list = PayloadList.objects.get(id=payload_list.id)
            self.changes.attach(payload_list, self.tag.id)
        if (
            differs
            or comes
            or payload_list.updated != item.updated
            or payload_list.description != item.description[:255]
        ):
            PayloadList.objects.filter(id=payload_list.id).update(
                updated=item.updated, description=item.description[:255]
            )
            if self.tag is not None and item.stays:
                self.changes.of_tag(self.tag.id)
            self.changed[item.id] = payload_list

    def _replace_rows(self, item: SourceList, payload_list: PayloadList) -> None:
        load_rows(self.copy, self.snapshot, [item.id])
        keeps_ids = self.copy.adoption.keeps_ids
        unshare([payload_list])
        values = {"source_list_id": item.id, "list_id": payload_list.id}
        with connection.cursor() as cursor:
            # Only these rows are in memory.
            cursor.execute(NEAR_DIFFERENCES, values)
            [(wanted, stored)] = cursor.fetchall()
        replacement = Replacement(
            payload_list,
            lambda: (row if keeps_ids else row | {"id": None} for row in stream_rows(ROWS, values | {"ids": wanted})),
            lambda: PayloadIOV.objects.filter(id__in=stored).order_by("comb_iov"),
        )
        if replacement.differ:
            left = replacement.apply(payload_list, self.changes)
            PayloadIOV.objects.filter(id__in=[iov.id for iov in left]).delete()
            with connection.cursor() as cursor:
                cursor.execute(TAKE_OVER_TIMES, values)

    def record(self, source: SourceTag | None) -> None:
        """Record the changes, and what was adopted: `source` (None: no tag) and the lists."""
        revisions = self.changes.record(ChangeAction.ADOPT, BY_ADOPT)
        if source is not None and self.tag is not None:
            GlobalTag.objects.filter(id=self.tag.id).update(updated=source.updated)
        for name, revision in revisions.items():
            # Lists may have come from other tags.
            tag_id = GlobalTag.objects.get(name=name).id
            self.copy.adoption.tags.filter(tag_id=tag_id).update(revision=revision)
        self.copy.adoption.lists.filter(source_id__in=[*self.made, *self.changed]).delete()
        note_lists(self.copy, self.found, self.made | self.changed)


@write
def _finish(copy: Copy, snapshot: Snapshot) -> None:
    """Copy what is in no tag, if it is kept, and record that all was copied."""
    if copy.keeps_detached:
        # The progress of new rows is that of their copy.
        _lists_without_tag(copy, read_lists(snapshot), snapshot, lambda count: None).record(None)
        load_detached(copy, snapshot)
        insert_loaded(copy, {}, [])
    Adoption.objects.filter(id=copy.adoption.id).update(finished=Now())


def _lists_without_tag(
    copy: Copy, every: Sequence[SourceList], snapshot: Snapshot, progress: Callable[[int], object]
) -> _Lists:
    """Make the lists without a tag those of the source; the changes are not recorded yet. `every` are all lists of the source."""
    # A list that is in a tag here is that of a tag which was left alone.
    in_tags = PayloadList.objects.exclude(global_tag=None).values("id")
    left_alone = set(copy.adoption.lists.filter(list_id__in=in_tags).values_list("source_id", flat=True))
    lists = [item for item in every if item.tag_id is None and item.id not in left_alone]
    found = summaries(snapshot, lists, copy.decisions, progress)
    check_decided(copy, lists, found)
    update = _Lists(copy, snapshot, None, found, Changes())
    update.apply(lists)
    return update


@write
def update_detached(copy: Copy, others: dict[int, str | None], kept: Sequence[str], snapshot: Snapshot) -> bool:
    """Make the lists without a tag and the IOVs without a list those of the source, and delete lists that it has deleted.

    `others` are lists with rows that decisions detach, and `kept` tags whose detached IOVs stay.
    """
    every = read_lists(snapshot)
    update = _lists_without_tag(copy, every, snapshot, partial(copy.progress, "without a tag"))
    gone = copy.adoption.lists.exclude(source_id__in=[item.id for item in every])
    known = dict(gone.values_list("list_id", "version"))
    deleted = [
        item
        for item in PayloadList.objects.filter(id__in=known, global_tag=None).order_by("id").select_for_update()
        # A list that was changed here stays.
        if item.version == known[item.id]
    ]
    ids = [item.id for item in deleted]
    supersede_lists([item.id for item in deleted if item.base_list_id is None])
    for payload_list in deleted:
        update.changes.of_list(payload_list)
    update.record(None)
    PayloadIOV.objects.filter(payload_list__in=ids).delete()
    with connection.cursor() as cursor:
        cursor.execute(DELETE_LISTS, {"list_ids": ids})
    copy.adoption.lists.filter(list_id__in=ids).delete()
    others |= _with_detached(update.found, None)
    load_detached(copy, snapshot)
    values = {"list_ids": list(others), "with_attached": False, "with_detached": True}
    load(snapshot, "copy_source_rows", values | copy.decisions.parameters, adds=True)
    with connection.cursor() as cursor:
        cursor.execute(UPDATE_DETACHED, {"first_own_id": copy.adoption.first_own_id, "kept_tags": list(kept)})
    insert_loaded(copy, dict.fromkeys(others, 0), list(others.values()))
    return True
