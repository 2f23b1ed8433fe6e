"""Export of the payload IOVs of a global tag. The database formats the rows, and the service only streams them."""

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.exports.copy_out import stream_copy
from cdb_rest.history.contents import Past, TagList, find_past, past_lists, present_lists, rows_of
from cdb_rest.models import GlobalTag, PayloadList
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import GlobalTagNotFoundError, PayloadTypeNotFoundError
from cdb_rest.rules.moment import Interval, Mode, Moment

ROWS = named_sql.load("export_rows")
SETTINGS = named_sql.load("export_settings")
MISSING_TYPE = named_sql.load("missing_payload_type")


class Form(StrEnum):
    """The format of an export."""

    CSV = "csv"
    JSONL = "jsonl"


# The rows replace {rows}.
STATEMENTS = {Form.CSV: named_sql.load("export_csv"), Form.JSONL: named_sql.load("export_jsonl")}


@dataclass(frozen=True)
class Selection:
    """What to export: a global tag, payload types by name or all (empty), a window of moments, and the state of the tag.

    The export has the IOVs of each payload list that start in the window, and the IOV that is valid at the first moment
    of the window. `as_of` is a state in the past, None for the present.
    """

    global_tag: str
    payload_types: tuple[str, ...]
    window: Interval
    as_of: AsOf | None = None


@dataclass(frozen=True)
class Source:
    """The state of the global tag that an export reads; `past` is None for the present.

    `values` are the parameters of the statement `ROWS`, except for the window.
    """

    revision: int
    past: Past | None
    values: Mapping[str, object]


def find_source(selection: Selection) -> Source:
    """The state that the selection is about. A payload type that the tag does not have has no rows.

    Raises `GlobalTagNotFoundError` or `PayloadTypeNotFoundError`; for the past also `RevisionNotFoundError` or
    `RevisionPrunedError`.
    """
    wanted = selection.payload_types
    if selection.as_of is not None:
        past = find_past(selection.global_tag, selection.as_of)
        lists = past_lists(past)
        check_payload_types(wanted, {item.payload_type for item in lists})
        return Source(past.revision, past, _values(lists, wanted))
    found = GlobalTag.objects.filter(name=selection.global_tag).values_list("id", "revision").first()
    if found is None:
        raise GlobalTagNotFoundError(selection.global_tag)
    tag_id, revision = found
    check_payload_types(wanted)
    return Source(revision, None, _values(present_lists(PayloadList.objects.filter(global_tag=tag_id)), wanted))


def _values(lists: list[TagList], wanted: Collection[str]) -> dict[str, object]:
    """The lists of the wanted payload types, all if it is empty, in the order of an export: by payload type in byte order."""
    chosen = [item for item in lists if not wanted or item.payload_type in wanted]
    chosen.sort(key=lambda item: item.payload_type.encode())
    return {"payload_types": [item.payload_type for item in chosen], **rows_of(chosen)}


def check_payload_types(names: Collection[str], known: Collection[str] = ()) -> None:
    """Raise `PayloadTypeNotFoundError` unless payload types of these names exist, or are `known`."""
    unknown = [name for name in names if name not in known]
    missing = fetch_all(MISSING_TYPE, {"names": unknown}) if unknown else []
    if missing:
        raise PayloadTypeNotFoundError(missing[0][0])


def export(
    selection: Selection, form: Form, note_source: Callable[[Source], None] = lambda source: None
) -> Generator[bytes]:
    """The selected rows from one snapshot of the database, as chunks of bytes.

    CSV always has at least one chunk, because it begins with a header line; JSONL may have none. Before the first
    chunk, the iterator raises the errors of `find_source`, and it calls `note_source` with the state that it reads. With any
    chunk it may raise `django.db.Error`, for example after `CDB_EXPORT_TIMEOUT_SECONDS`.

    Nothing is done before the first chunk is requested. From then on until the iterator ends or is closed, it has a
    transaction. So the caller must close it, in the same thread, must not be in a transaction, and must not use the connection
    meanwhile.
    """
    with snapshot():
        source = find_source(selection)
        note_source(source)
        with connection.cursor() as cursor:
            cursor.execute(SETTINGS, {"milliseconds": str(settings.CDB_EXPORT_TIMEOUT_SECONDS * 1000)})
        statement = STATEMENTS[form].replace("{rows}", ROWS)
        values = window_values(selection.window) | dict(source.values) | {"mode": settings.CDB_IOV_MODE}
        with stream_copy(statement, values) as chunks:
            yield from chunks


def window_values(window: Interval) -> dict[str, object]:
    """The parameters of the rows of a source for a window."""
    since: Moment = window.start
    return {
        "since": since.combined,
        "since_major": since.major,
        "since_minor": since.minor,
        "until": window.end.combined,
        "inclusive": Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE,
    }
