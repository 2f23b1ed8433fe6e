"""Copies of all tags of a database of nopayloaddb, and its later changes, taken over as recorded changes.

What has changed is found by comparing hashes of the rows of each list, because nopayloaddb changes rows without changing their
times. A global tag that was changed here since its last adoption is a conflict, and is left alone.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from django.db import connection
from django.db.models.functions import Now

from cdb_rest import named_sql
from cdb_rest.adopt.contents import SourceList, SourceTag, Summary, read_lists, read_tags, summaries
from cdb_rest.adopt.copying import (
    BY_ADOPT,
    Copy,
    check_decided,
    copy_types,
    create_tag,
    insert_loaded,
    load,
    load_detached,
    origin_of,
)
from cdb_rest.adopt.lists import ConflictError, TagLists, lists_without_tag
from cdb_rest.adopt.source import Snapshot, SourceError
from cdb_rest.models import AdoptedTag, Adoption, ChangeAction, GlobalTag, GlobalTagStatus, PayloadIOV, PayloadList
from cdb_rest.rules.errors import CdbError, DatabaseUnavailableError, InvalidInputError, quoted
from cdb_rest.rules.status import Status
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.global_tags import change_status, delete_global_tag
from cdb_rest.writes.history import supersede_lists
from cdb_rest.writes.locks import lock_global_tags
from cdb_rest.writes.payload_lists import detach
from cdb_rest.writes.restorations import check_not_retired
from cdb_rest.writes.transactions import write

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
            except ConflictError as error:
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
        except (ConflictError, CdbError) as error:
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

    `others` gets the lists that have rows which are detached by decisions, with the name of the tag. Raises `ConflictError`
    or `InvalidInputError`.
    """
    # The progress of new rows is that of their copy.
    lists, found = _read_lists(copy, tag, snapshot, lambda count: None)
    created = create_tag(copy, tag)
    others.update(_with_detached(found, created.name))
    changes = Changes()
    update = TagLists(copy, snapshot, created, found, changes)
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
            raise ConflictError("it was deleted in the source, and is frozen here")
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
    """The copy of a tag, locked; None if it was deleted here. Raises `ConflictError` if it was changed here."""
    tag = lock_global_tags({adopted.tag_id}).get(adopted.tag_id)
    if adopted.source_name in copy.overwrites:
        return tag
    if tag is not None and tag.revision != AdoptedTag.objects.get(id=adopted.id).revision:
        raise ConflictError("it was changed here since its last adoption")
    return tag


@write
def update_tag(
    copy: Copy, tag: SourceTag, adopted: AdoptedTag, others: dict[int, str | None], snapshot: Snapshot
) -> bool:
    """Give the copy of a tag the contents of the source. Returns whether anything changed.

    `others` gets the lists that have rows which are detached by decisions, with the name of the tag. Raises `ConflictError`.
    """
    here = _lock(copy, adopted)
    if here is None and tag.name in copy.overwrites:
        adopted.delete()
        return add_tag(copy, tag, others, snapshot)
    if here is None:
        raise ConflictError("it was deleted here")
    if tag.name != adopted.source_name:
        raise ConflictError(f"its name in the source is {tag.name} now")
    lists, found = _read_lists(copy, tag, snapshot, partial(copy.progress, here.name))
    others.update(_with_detached(found, here.name))
    changes = Changes()
    is_other = _update_attributes(copy, tag, here, changes)
    update = TagLists(copy, snapshot, here, found, changes)
    if not update.apply(lists) and not is_other:
        # It may have been changed here, and changed back.
        AdoptedTag.objects.filter(id=adopted.id).update(revision=here.revision)
        return False
    if here.status.name == Status.FROZEN:
        raise ConflictError("it was changed in the source, and is frozen here")
    changes.of_tag(here.id).source = origin_of(copy, snapshot, tag, lists, found)
    AdoptedTag.objects.filter(id=adopted.id).update(snapshot=snapshot.name)
    update.record(tag)
    return True


def _update_attributes(copy: Copy, tag: SourceTag, here: GlobalTag, changes: Changes) -> bool:
    status = copy.decisions.status(tag.status)
    if status is None:
        raise ConflictError(f"the source needs the decision --map-status {tag.status}=…")
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


@write
def _finish(copy: Copy, snapshot: Snapshot) -> None:
    """Copy what is in no tag, if it is kept, and record that all was copied."""
    if copy.keeps_detached:
        # The progress of new rows is that of their copy.
        lists_without_tag(copy, read_lists(snapshot), snapshot, lambda count: None).record(None)
        load_detached(copy, snapshot)
        insert_loaded(copy, {}, [])
    Adoption.objects.filter(id=copy.adoption.id).update(finished=Now())


@write
def update_detached(copy: Copy, others: dict[int, str | None], kept: Sequence[str], snapshot: Snapshot) -> bool:
    """Make the lists without a tag and the IOVs without a list those of the source, and delete lists that it has deleted.

    `others` are lists with rows that decisions detach, and `kept` tags whose detached IOVs stay.
    """
    every = read_lists(snapshot)
    update = lists_without_tag(copy, every, snapshot, partial(copy.progress, "without a tag"))
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
