"""The payload lists of a copied global tag: they get the rows that the source has now, and lists come and leave."""

from collections.abc import Callable, Collection, Sequence

from django.db import connection
from django.db.models import Q

from cdb_rest import named_sql
from cdb_rest.adopt.contents import SourceList, SourceTag, Summary, summaries
from cdb_rest.adopt.copying import BY_ADOPT, Copy, add_lists, check_decided, load_rows, note_lists
from cdb_rest.adopt.source import Snapshot
from cdb_rest.history.contents import stream_rows
from cdb_rest.models import AdoptedList, ChangeAction, GlobalTag, PayloadIOV, PayloadList
from cdb_rest.rules.status import Status
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.payload_lists import detach
from cdb_rest.writes.replacing import Replacement
from cdb_rest.writes.sharing import unshare

ROWS = named_sql.load("adopted_rows")
NEAR_DIFFERENCES = named_sql.load("rows_near_differences")
TAKE_OVER_TIMES = named_sql.load("take_over_times")


class ConflictError(Exception):
    """A tag cannot follow the source. The message says why."""


class TagLists:
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
                raise ConflictError(f"payload list {payload_list.name} was changed here since its last adoption")
            here = payload_list.payload_type.name
            if here != self.copy.decisions.name("payload type", item.payload_type or ""):
                raise ConflictError(
                    f"payload list {item.name} has the payload type {item.payload_type} in the source now, and {here} here"
                )
            self._update_list(item, known[item.id], payload_list)
        if new:
            self.made = add_lists(self.copy, self.snapshot, new, self.found, self.tag, self.changes)
        return bool(leaving or self.made or self.changed)

    def _check_owners(self, tag_ids: Collection[int | None]) -> None:
        """Raise `ConflictError` if lists are in another tag here that must not lose them."""
        adopted = dict(self.copy.adoption.tags.values_list("tag_id", "revision"))
        for owner in GlobalTag.objects.filter(id__in=[tag_id for tag_id in tag_ids if tag_id is not None]):
            if self.tag is not None and owner.id == self.tag.id:
                continue
            if owner.status.name == Status.FROZEN:
                raise ConflictError(f"it has a payload list of {owner.name} in the source, which is frozen here")
            if owner.revision != adopted.get(owner.id):
                raise ConflictError(f"it has a payload list of {owner.name} in the source, which was changed here")

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


def lists_without_tag(
    copy: Copy, every: Sequence[SourceList], snapshot: Snapshot, progress: Callable[[int], object]
) -> TagLists:
    """Make the lists without a tag those of the source; the changes are not recorded yet. `every` are all lists of the source."""
    # A list that is in a tag here is that of a tag which was left alone.
    in_tags = PayloadList.objects.exclude(global_tag=None).values("id")
    left_alone = set(copy.adoption.lists.filter(list_id__in=in_tags).values_list("source_id", flat=True))
    lists = [item for item in every if item.tag_id is None and item.id not in left_alone]
    found = summaries(snapshot, lists, copy.decisions, progress)
    check_decided(copy, lists, found)
    update = TagLists(copy, snapshot, None, found, Changes())
    update.apply(lists)
    return update
