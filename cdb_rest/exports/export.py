"""Export of the payload IOVs of a global tag. The database formats the rows, and the service only streams them."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.exports.copy_out import stream_copy
from cdb_rest.history.contents import Past, find_past, past_lists
from cdb_rest.models import GlobalTag, PayloadList, PayloadType
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import GlobalTagNotFoundError, PayloadListNotFoundError, PayloadTypeNotFoundError
from cdb_rest.rules.moment import Interval, Mode, Moment

ROWS = named_sql.load("export_rows")
PAST_ROWS = named_sql.load("export_past_rows")
SETTINGS = named_sql.load("export_settings")


class Form(StrEnum):
    """The format of an export."""

    CSV = "csv"
    JSONL = "jsonl"


# The rows replace {rows}.
STATEMENTS = {Form.CSV: named_sql.load("export_csv"), Form.JSONL: named_sql.load("export_jsonl")}


@dataclass(frozen=True)
class Selection:
    """What to export: a global tag, one payload type by name or all (None), a window of moments, and the state of the tag.

    The export has the IOVs of each payload list that start in the window, and the IOV that is valid at the first moment
    of the window. `as_of` is a state in the past, None for the present.
    """

    global_tag: str
    payload_type: str | None
    window: Interval
    as_of: AsOf | None = None


@dataclass(frozen=True)
class Source:
    """The state of the global tag that an export reads; `past` is None for the present.

    `rows` is the statement of the rows, and `values` are its parameters, except for the window.
    """

    revision: int
    past: Past | None
    rows: str
    values: Mapping[str, object]


def find_source(selection: Selection) -> Source:
    """The state that the selection is about.

    Raises `GlobalTagNotFoundError`, `PayloadTypeNotFoundError`, or `PayloadListNotFoundError` if the tag has no such
    list; for the past also `RevisionNotFoundError` or `RevisionPrunedError`.
    """
    if selection.as_of is not None:
        return _find_past_source(selection, selection.as_of)
    found = GlobalTag.objects.filter(name=selection.global_tag).values_list("id", "revision").first()
    if found is None:
        raise GlobalTagNotFoundError(selection.global_tag)
    tag_id, revision = found
    type_id = None
    if selection.payload_type is not None:
        type_id = check_payload_type(selection.payload_type)
        if not PayloadList.objects.filter(global_tag=tag_id, payload_type=type_id).exists():
            raise _no_list(selection)
    return Source(revision, None, ROWS, {"tag_id": tag_id, "payload_type_id": type_id})


def _find_past_source(selection: Selection, as_of: AsOf) -> Source:
    past, kind = find_past(selection.global_tag, as_of), selection.payload_type
    if kind is not None and kind not in {payload_list.payload_type for payload_list in past_lists(past)}:
        check_payload_type(kind)
        raise _no_list(selection)
    values = {"tag_id": past.tag_id, "number": past.number, "payload_type": kind}
    return Source(past.revision, past, PAST_ROWS, values)


def check_payload_type(name: str) -> int:
    """The id of the payload type. Raises `PayloadTypeNotFoundError`."""
    found = PayloadType.objects.filter(name=name).values_list("id", flat=True).first()
    if found is None:
        raise PayloadTypeNotFoundError(name)
    return found


def _no_list(selection: Selection) -> PayloadListNotFoundError:
    return PayloadListNotFoundError(f"of type {selection.payload_type} in global tag {selection.global_tag}")


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
        statement = STATEMENTS[form].replace("{rows}", source.rows)
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
