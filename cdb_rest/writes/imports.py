"""Import of the rows of a file into a global tag."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from cdb_rest.analysis.contents import ListVersion
from cdb_rest.models import ChangeAction, GlobalTag, PayloadList, PayloadType
from cdb_rest.models.payload_list import PRESENT
from cdb_rest.rules.access import BY_THE_SYSTEM, Origin
from cdb_rest.rules.errors import GlobalTagNotFoundError, InvalidInputError, PayloadTypeNotFoundError, quoted
from cdb_rest.rules.iov_rows import FAULTS_NAMED, IOVRow, refused_lines
from cdb_rest.rules.moment import Interval, Moment
from cdb_rest.rules.names import NAME_LENGTH
from cdb_rest.rules.status import Action, Status, check_permitted, is_protected, role_for
from cdb_rest.writes import import_file
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.effect_sweep import Affected, read_effects
from cdb_rest.writes.effects import Effects, check_confirmed
from cdb_rest.writes.global_tags import add_global_tag
from cdb_rest.writes.import_file import TypeRows
from cdb_rest.writes.locks import lock_global_tag, lock_payload_lists
from cdb_rest.writes.payload_lists import create_lists
from cdb_rest.writes.payload_types import add_payload_type
from cdb_rest.writes.placing import Placement, Plan
from cdb_rest.writes.rows import new_iov, set_interval
from cdb_rest.writes.sharing import unshare
from cdb_rest.writes.transactions import write

# Rows that the interval rule places in one step; limits the memory.
ROWS_AT_ONCE = 50_000
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ImportOptions:
    """How the rows of a file are placed.

    - `creates`: a tag and payload types that do not exist are created.
    - `in_order`: the rows are applied one after the other by the interval rule, instead of as a set.
    - `hides_later`: a row that the file calls open hides all later IOVs of its list that are not in the file.
    """

    creates: bool = False
    in_order: bool = False
    hides_later: bool = False


@dataclass
class ImportResult:
    """The result of an import: its effects, new payload lists, and the new `revision` of the tag, None if nothing changed."""

    effects: Effects = field(default_factory=Effects)
    new_lists: list[PayloadList] = field(default_factory=list)
    revision: int | None = None


@write
def import_payload_iovs(
    *,
    read: Callable[[], Iterable[IOVRow]],
    global_tag: str,
    options: ImportOptions = ImportOptions(),
    action: ChangeAction = ChangeAction.BULK,
    confirmed: bool = False,
    progress: Progress = lambda done, total: None,
    origin: Origin = BY_THE_SYSTEM,
) -> ImportResult:
    """Insert all rows of a file into a tag, or none. A file without rows changes nothing.

    An import that removes existing IOVs, or that makes a gap between IOVs, must be `confirmed`.

    `read` returns the rows, and is called again if `write` retries the import. Missing payload lists are created. Other writers
    of the tag wait until the import ends.

    The rows are a set, unless they are applied `in_order`: two rows of a type must not have the same start, nor may a row start
    before the end of another one. A row without an end is valid up to the next start in the file or in its list. A row whose
    payload is valid in its whole interval already changes nothing. Otherwise a row replaces a stored one with the same start.

    `progress` gets the number of rows that were inserted so far, and the number of rows of the file. If the import is
    retried, the count begins again.

    The change log gets an entry for a created tag, and one for the import, with `action`.

    Raises the errors of `read`, `InvalidInputError` for rows that are no set, and for rejected rows `OverlapError`,
    `TagFrozenError` or `TagLimitError`, with the numbers of the rows; `ConfirmationRequiredError`, `GlobalTagNotFoundError`,
    `PayloadTypeNotFoundError`, `NameTakenError` (a tag or type was created at the same moment), `ConcurrentChangeError`,
    `DatabaseUnavailableError`, or those of missing permissions.
    """
    result = ImportResult()
    tag = _lock_or_create_tag(global_tag, options, origin, result)
    import_file.load(read())
    faults: list[tuple[int, str]] = []
    found = import_file.read_types(None if options.in_order else faults)
    if faults:
        raise refused_lines([(number, InvalidInputError(text)) for number, text in faults])
    if not found:
        transaction.set_rollback(True)
        return ImportResult()
    types = _types(found, options, origin, result)
    for name in found:
        origin.principal.require(role_for(Action.ADD_IOV, tag.status.name), tag.name, name)
    changes = Changes()
    lists = _lists(tag, types, changes, result)
    total = sum(rows.count for rows in found.values())
    done = 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    affected = [
        _import_type(tag, lists[name], name, rows, total, options, changes, result.new_lists, report)
        for name, rows in found.items()
    ]
    effects = replace(
        read_effects(affected, has_file=True),
        creates_tag=result.effects.creates_tag,
        new_types=result.effects.new_types,
        new_lists=len(result.new_lists),
    )
    result.effects = effects
    if not confirmed:
        check_confirmed(effects)
    if not effects.changes_nothing:
        result.revision = changes.record(action, origin).get(tag.name)
    return result


def _import_type(
    tag: GlobalTag,
    payload_list: PayloadList,
    payload_type: str,
    rows: TypeRows,
    total: int,
    options: ImportOptions,
    changes: Changes,
    new_lists: Sequence[PayloadList],
    report: Callable[[int], None],
) -> Affected:
    """Insert the rows of a type, and say what was affected. `report` gets the numbers of rows that were inserted."""
    before, is_new = _version(payload_list), payload_list in new_lists
    unchanged, is_filled = 0, _is_filled(tag, payload_list, total)
    for placed, held in _insert(tag, payload_list, payload_type, rows, total, options, changes):
        unchanged += held
        report(placed)
    last = rows.last_end if options.in_order or options.hides_later else rows.last
    return Affected(
        payload_type,
        None if is_new else before,
        before if unchanged == rows.count and not is_new else _present(payload_list),
        Interval(rows.first, last),
        added=rows.count - unchanged,
        unchanged=unchanged,
        is_filled=is_filled,
    )


def _version(payload_list: PayloadList) -> ListVersion:
    """Where the rows of a list are, also after the write."""
    version = payload_list.version if payload_list.base_version is None else payload_list.base_version
    return ListVersion(payload_list.rows_list_id, version, payload_list.iov_count, version)


def _present(payload_list: PayloadList) -> ListVersion:
    return ListVersion(payload_list.rows_list_id, PRESENT, payload_list.iov_count, PRESENT)


def _lock_or_create_tag(name: str, options: ImportOptions, origin: Origin, result: ImportResult) -> GlobalTag:
    try:
        tag = lock_global_tag(name)
    except GlobalTagNotFoundError:
        if not options.creates:
            raise
        author = origin.actor[:NAME_LENGTH]
        tag, changes = add_global_tag(name=name, status=Status.UNLOCKED, author=author, description="")
        changes.record(ChangeAction.CREATE, origin)
        result.effects.creates_tag = True
        return tag
    # Before the file is read.
    origin.principal.require(role_for(Action.ADD_IOV, tag.status.name), tag.name)
    return tag


def _types(
    found: Mapping[str, TypeRows], options: ImportOptions, origin: Origin, result: ImportResult
) -> list[PayloadType]:
    """Find or create the payload types. Returns them in the order of `found`."""
    types = {payload_type.name: payload_type for payload_type in PayloadType.objects.filter(name__in=found)}
    missing = [name for name in found if name not in types]
    if missing and not options.creates:
        error = PayloadTypeNotFoundError(", ".join(missing[:10]))
        lines = sorted((found[name].number, name) for name in missing)[:FAULTS_NAMED]
        text = "There is no payload type {}; correct payload_type, or create the type."
        error.rows = [
            {"row": number - 1, "code": error.code, "detail": text.format(quoted(name))} for number, name in lines
        ]
        raise error
    types |= {name: add_payload_type(name=name, origin=origin) for name in missing}
    result.effects.new_types = missing
    return [types[name] for name in found]


def _lists(tag: GlobalTag, types: list[PayloadType], changes: Changes, result: ImportResult) -> dict[str, PayloadList]:
    """Find and lock, or create, the tag's payload lists. Returns them by type name."""
    found = PayloadList.objects.filter(global_tag=tag, payload_type__in=types).values_list("name", flat=True)
    lists = {item.payload_type.name: item for item in lock_payload_lists(list(found)).values()}
    missing = [(kind, tag) for kind in types if kind.name not in lists]
    if missing:
        check_permitted(tag=tag.name, status=tag.status.name, action=Action.ADD_LIST)
        result.new_lists = create_lists(missing)
    for payload_list in result.new_lists:
        changes.attach(payload_list, tag.id)
        lists[payload_list.payload_type.name] = payload_list
    return lists


def _is_filled(tag: GlobalTag, payload_list: PayloadList, total: int) -> bool:
    """Whether one statement inserts all rows: there are none to cut, and no limits to check."""
    has_limits = tag.closed is not None or tag.largest_major is not None
    return total > ROWS_AT_ONCE and not has_limits and payload_list.iov_count == 0


def _insert(
    tag: GlobalTag,
    payload_list: PayloadList,
    payload_type: str,
    rows: TypeRows,
    total: int,
    options: ImportOptions,
    changes: Changes,
) -> Iterator[tuple[int, int]]:
    """Insert the rows of a type, in batches. Yields the size of each batch, and how many of its rows change nothing."""
    is_large = total > ROWS_AT_ONCE
    if options.in_order and is_large:
        raise InvalidInputError(f"A file whose rows are applied in order has at most {ROWS_AT_ONCE:,} rows.")
    if _is_filled(tag, payload_list, total):
        unshare([payload_list])
        # There are no rows to cut, so one statement is enough.
        import_file.insert_into_empty_list(payload_type, payload_list)
        changes.of_list(payload_list, added=rows.count)
        yield rows.count, 0
        return
    batches = _Batches(payload_list, payload_type, options)
    if is_large and is_protected(tag.status.name):
        # Check all rows before inserting any. Otherwise the rows of one batch would be protected against the next batch.
        for plan, _ in batches.plans(protecting=True):
            del plan
    for plan, placements in batches.plans(protecting=not is_large):
        if not plan.changes_nothing:
            plan.apply(changes)
        yield len(placements), sum(placement.holder is not None for placement in placements)


@dataclass(frozen=True)
class _Batches:
    """The rows of a payload type, planned in batches."""

    payload_list: PayloadList
    payload_type: str
    options: ImportOptions

    def plans(self, *, protecting: bool) -> Iterator[tuple[Plan, list[Placement]]]:
        """The plan of each batch. Raises the error of the rejected rows."""
        following: Placement | None = None
        for rows in import_file.read_rows(self.payload_type, ROWS_AT_ONCE, in_order=self.options.in_order):
            placements = []
            if following is not None:
                # Otherwise all batches would stay in the memory.
                following.following = None
            for row in rows:
                placement = self._placement(row, None if self.options.in_order else following)
                placements.append(placement)
                following = placement
            plan = Plan(placements, protecting=protecting, word="line")
            if plan.refusals:
                raise refused_lines(plan.refusals)
            yield plan, placements

    def _placement(self, row: dict[str, Any], following: Placement | None) -> Placement:
        """The placement of a row; `following` is that of the row with the next start, None for the last one and without a set."""
        number, has_end, is_open = row.pop("line"), row.pop("has_end"), row.pop("is_open")
        iov = new_iov(row)
        if is_open and (self.options.hides_later or self.options.in_order):
            has_end = True
            if following is not None:
                set_interval(iov, Interval(Moment(iov.major_iov, iov.minor_iov), following.interval.start))
        return Placement(iov, self.payload_list, since_only=not has_end, number=number, following=following)
