"""Copies of global tags of nopayloaddb: one transaction for each, with a record of what it copied."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.adopt.contents import DETACHED, SourceList, SourceTag, Summary, read_types
from cdb_rest.adopt.decisions import FAULT_CHOICES, Decisions
from cdb_rest.adopt.source import Snapshot, Source
from cdb_rest.models import (
    AdoptedList,
    Adoption,
    GlobalTag,
    GlobalTagChange,
    GlobalTagStatus,
    PayloadIOV,
    PayloadList,
    PayloadListVersion,
    PayloadType,
)
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import InvalidInputError, quoted
from cdb_rest.rules.names import LIST_NAME_LENGTH, check_new_name, name_fault
from cdb_rest.rules.status import Status
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.restorations import check_not_retired
from cdb_rest.writes.transactions import write

CREATE_TABLE = named_sql.load("create_adopted_rows")
EMPTY_TABLE = named_sql.load("empty_adopted_rows")
COPY_IN = named_sql.load("copy_adopted_rows")
INSERT = named_sql.load("insert_adopted_rows")
OWN_IDS = named_sql.load("begin_own_ids_above")
REFRESH = named_sql.load("refresh_after_seeding")
BY_ADOPT = Origin("adopt")
# Rows that are stored by one statement.
ROWS_AT_ONCE = 200_000
# Between the greatest id of the source and the first one of this service.
ROOM_FOR_IDS = 10**9

# Gets the name of what is copied, and the number of IOVs that were copied since the last call.
Progress = Callable[[str, int], object]


@dataclass(frozen=True)
class Copy:
    """What a copy needs: the source, the record, the decisions, and where progress goes.

    Changes that were made here in the tags `overwrites`, by their names in the source, give way to it.
    """

    source: Source
    adoption: Adoption
    decisions: Decisions
    progress: Progress
    overwrites: Collection[str] = ()

    @property
    def keeps_detached(self) -> bool:
        """Whether lists without a tag and IOVs without a list are copied, too."""
        return self.decisions.choice("detached") == "keep"


def is_empty() -> bool:
    """Whether this database has no global tags, payload types, lists and IOVs."""
    return not any(model.objects.exists() for model in (GlobalTag, PayloadType, PayloadList, PayloadIOV))


def merged(adoption: Adoption, decisions: Decisions) -> Decisions:
    """The decisions of an adoption, and those that were added. Raises `InvalidInputError` if one of them says something else."""
    copied = set(adoption.tags.values_list("source_name", flat=True))
    return Decisions.from_json(adoption.decisions).extended(decisions, copied)


@write
def begin(source: Source, decisions: Decisions) -> Adoption:
    """The record of the adoption of a source, and in an empty database room for its ids. An earlier one goes on.

    Raises `InvalidInputError` if it was begun with other decisions.
    """
    adoption = Adoption.objects.filter(source=source.identity).first()
    if adoption is not None:
        adoption.decisions = merged(adoption, decisions).as_json()
        adoption.save(update_fields=["decisions"])
        return adoption
    # Two sources may have the same ids.
    keeps_ids = is_empty() and not Adoption.objects.filter(keeps_ids=True).exists()
    [(greatest, _)] = source.read(lambda snapshot: snapshot.rows("source_greatest_id"))
    if keeps_ids:
        # Without this, an object that is created here before the copy ends would get an id of the source.
        with connection.cursor() as cursor:
            cursor.execute(OWN_IDS, {"greatest": greatest + ROOM_FOR_IDS})
    return Adoption.objects.create(
        source=source.identity,
        decisions=decisions.as_json(),
        keeps_ids=keeps_ids,
        first_own_id=greatest + ROOM_FOR_IDS + 1,
    )


def refresh_statistics() -> None:
    """Vacuum and analyze the tables, for the planner and for index-only scans."""
    with connection.cursor() as cursor:
        cursor.execute(REFRESH)


@write
def copy_types(copy: Copy, snapshot: Snapshot) -> bool:
    """Create the payload types of the source that are missing, also those without a list. Returns whether it could."""
    for source_type in read_types(snapshot):
        name = copy.decisions.name("payload type", source_type.name)
        is_free = source_type.id is not None and not PayloadType.objects.filter(id=source_type.id).exists()
        ids = {"id": source_type.id} if copy.adoption.keeps_ids and is_free else {}
        _type(name, description=source_type.description[:255], created=source_type.created, **ids)
    return True


def _type(name: str, **columns: Any) -> PayloadType:
    """The payload type with a name, which is created with these columns if there is none."""
    found = PayloadType.objects.filter(name=name).first()
    if found is None:
        check_new_name(name, settings.CDB_NAME_PATTERN)
        found = PayloadType.objects.create(name=name, **columns)
    return found


def check_decided(copy: Copy, lists: Sequence[SourceList], found: dict[int, Summary]) -> None:
    """Raise `InvalidInputError` if a decision about lists or their rows is missing: the source has changed since the report."""
    kinds = {kind for summary in found.values() for kind, count in summary.faults.items() if count}
    if any(item.tag_id is not None and not item.stays for item in lists):
        kinds.add("two_lists")
    for kind in sorted(kinds):
        if not copy.decisions.decides(kind):
            raise InvalidInputError(f"the source needs the decision {FAULT_CHOICES[kind].option}")
    for item in lists:
        if item.payload_type is None:
            raise InvalidInputError(f"payload list {quoted(item.name)} of the source has no payload type")
        if len(copy.decisions.list_name(item.name, item.payload_type)) > LIST_NAME_LENGTH:
            raise InvalidInputError(f"the name of payload list {quoted(item.name)} is too long (--rename-bad-names)")


def origin_of(
    copy: Copy, snapshot: Snapshot, tag: SourceTag, lists: Sequence[SourceList], found: dict[int, Summary]
) -> dict[str, Any]:
    """What the change log says about the adoption of a tag: the source, the snapshot and what was decided, with numbers."""
    decided: dict[str, int] = {}
    for summary in found.values():
        for fault, count in summary.changed_by_decisions.items():
            decided[fault] = decided.get(fault, 0) + count
    if others := sum(not item.stays for item in lists):
        decided["two_lists"] = others
    return {
        "adopted_from": {"database": copy.source.database, "global_tag": tag.name, "status": tag.status or ""},
        "snapshot": snapshot.name,
        "decisions": {"mode": copy.decisions.mode, **copy.decisions.choices},
        "decided": decided,
    }


def create_tag(copy: Copy, tag: SourceTag) -> GlobalTag:
    """Create the copy of a tag, without lists. Raises `InvalidInputError`."""
    name, status = copy.decisions.name("global tag", tag.name), copy.decisions.status(tag.status)
    if fault := name_fault(name, settings.CDB_NAME_PATTERN):
        raise InvalidInputError(f"{fault} (--rename {tag.name}=NEW)")
    if status is None:
        raise InvalidInputError(f"its status {quoted(tag.status)} needs a decision (--map-status {tag.status}=STATUS)")
    if GlobalTag.objects.filter(name=name).exists():
        raise InvalidInputError(f"a global tag {quoted(name)} exists here already (--rename {tag.name}=NEW)")
    if status == Status.FROZEN:
        check_not_retired(name)
    keeps = copy.adoption.keeps_ids and not GlobalTagChange.objects.filter(tag_id=tag.id).exists()
    return GlobalTag.objects.create(
        **({"id": tag.id} if keeps else {}),
        name=name,
        author=tag.author[:80],
        description=tag.description[:255],
        status=GlobalTagStatus.objects.get(name=status),
        created=tag.created,
        updated=tag.updated,
    )


def add_lists(
    copy: Copy,
    snapshot: Snapshot,
    lists: Sequence[SourceList],
    found: dict[int, Summary],
    tag: GlobalTag | None,
    changes: Changes,
) -> dict[int, PayloadList]:
    """Copy lists with their rows into a tag (None: into none), and add them to the changes. Returns them by id in the source."""
    made = _create_lists(copy, lists, found, tag)
    _copy_rows(copy, snapshot, tag.name if tag else None, found, made)
    for payload_list in PayloadList.objects.filter(id__in=[item.id for item in made.values()]):
        if payload_list.global_tag_id is not None:
            changes.attach(payload_list, payload_list.global_tag_id)
        changes.of_list(payload_list)
    return made


def _create_lists(
    copy: Copy, lists: Sequence[SourceList], found: dict[int, Summary], tag: GlobalTag | None
) -> dict[int, PayloadList]:
    """Create the copies of lists, without rows, by their id in the source. With `share`, lists with equal rows share them."""
    keeps = copy.adoption.keeps_ids
    ids = [item.id for item in lists]
    # Also the ids of lists that were deleted, because they have a history.
    taken = {
        *PayloadList.objects.filter(id__in=ids).values_list("id", flat=True),
        *PayloadListVersion.objects.filter(payload_list_id__in=ids).values_list("payload_list_id", flat=True),
    }
    names = [copy.decisions.list_name(item.name, item.payload_type) for item in lists]
    taken_names = set(PayloadList.objects.filter(name__in=names).values_list("name", flat=True))
    types = {item.payload_type: _type(copy.decisions.name("payload type", item.payload_type or "")) for item in lists}
    made = {}
    for item, name in zip(lists, names, strict=True):
        keeps_id = keeps and item.id not in taken
        base = _base(copy, found[item.id])
        payload_list = PayloadList(
            id=item.id if keeps_id else None,
            name=name,
            description=item.description[:255],
            global_tag=tag if item.stays else None,
            left_tag=None if item.stays or tag is None else tag.name,
            payload_type=types[item.payload_type],
            created=item.created,
            updated=item.updated,
        )
        if base is not None:
            payload_list.base_list_id, payload_list.base_version = base.id, base.version
            payload_list.iov_count, payload_list.edited = base.iov_count, base.edited
        if not keeps_id or name in taken_names:
            payload_list.name = ""
            payload_list.save()
            payload_list.name = f"{payload_list.payload_type.name}_{payload_list.id}"
            payload_list.save(update_fields=["name"])
        else:
            payload_list.save(force_insert=True)
        made[item.id] = payload_list
    return made


def _base(copy: Copy, summary: Summary) -> PayloadList | None:
    """A list that has the same rows since its adoption, if lists are to share rows."""
    if not copy.decisions.share or not summary.attached or summary.attached != summary.count:
        return None
    same = copy.adoption.lists.filter(rows_hash=summary.rows_hash, iov_count=summary.attached)
    for list_id, version in same.order_by("id").values_list("list_id", "version")[:1]:
        return PayloadList.objects.filter(id=list_id, version=version, base_list_id=None).first()
    return None


def _copy_rows(
    copy: Copy, snapshot: Snapshot, tag: str | None, found: dict[int, Summary], made: dict[int, PayloadList]
) -> None:
    """Copy the rows of new lists that do not share those of others, in parts of about `ROWS_AT_ONCE`."""
    part: list[int] = []
    rows = 0
    wanted = [list_id for list_id, item in made.items() if item.base_list_id is None]
    for list_id in wanted:
        part.append(list_id)
        rows += found[list_id].count
        if rows >= ROWS_AT_ONCE or list_id == wanted[-1]:
            load_rows(copy, snapshot, part)
            insert_loaded(copy, {source_id: made[source_id].id for source_id in part}, [tag] * len(part))
            copy.progress(tag or "without a tag", rows)
            part, rows = [], 0
    copy.progress(tag or "without a tag", sum(found[item].count for item in made if item not in wanted))


def load_rows(copy: Copy, snapshot: Snapshot, list_ids: Sequence[int]) -> None:
    """Load the rows of lists of the source into the temporary table."""
    # An update stores the detached rows of all lists at its end.
    with_detached = copy.keeps_detached and copy.adoption.finished is None
    values = {"list_ids": list(list_ids), "with_attached": True, "with_detached": with_detached}
    load(snapshot, "copy_source_rows", values | copy.decisions.parameters)


def load_detached(copy: Copy, snapshot: Snapshot) -> None:
    """Load the IOVs without a list into the temporary table, with the numbers that they have."""
    values = copy.decisions.parameters | {"detaching": [], "opening": []}
    load(snapshot, "copy_source_detached", values, condition=DETACHED)


def load(snapshot: Snapshot, statement: str, values: dict[str, Any], *, adds: bool = False, **parts: str) -> None:
    """Load the rows of a COPY statement of the source into the temporary table; with `adds`, to those that are there."""
    with connection.cursor() as cursor:
        cursor.execute(CREATE_TABLE)
        if not adds:
            cursor.execute(EMPTY_TABLE)
        with snapshot.copy(statement, values, **parts) as rows:
            cursor.copy_expert(COPY_IN, rows, 1 << 20)


def insert_loaded(copy: Copy, list_ids: dict[int, int], left_tags: Sequence[str | None]) -> None:
    """Store the rows of the temporary table in new lists: `list_ids` by their ids in the source, with the names of their tags."""
    with connection.cursor() as cursor:
        cursor.execute(
            INSERT,
            {
                "source_list_ids": list(list_ids),
                "list_ids": list(list_ids.values()),
                "left_tags": list(left_tags),
                "keeps_ids": copy.adoption.keeps_ids,
            },
        )


def note_lists(copy: Copy, found: dict[int, Summary], made: dict[int, PayloadList]) -> None:
    """Record the lists that were adopted."""
    versions = dict(PayloadList.objects.filter(id__in=[item.id for item in made.values()]).values_list("id", "version"))
    AdoptedList.objects.bulk_create(
        [
            AdoptedList(
                adoption=copy.adoption,
                source_id=source_id,
                list_id=item.id,
                version=versions[item.id],
                iov_count=found[source_id].attached,
                rows_hash=found[source_id].rows_hash,
            )
            for source_id, item in made.items()
        ],
        batch_size=1000,
    )
