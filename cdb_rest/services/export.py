"""Export of the payload IOVs of a global tag. The database formats the rows, and the service only streams them."""

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.domain.errors import (
    GlobalTagNotFoundError,
    OverloadedError,
    PayloadListNotFoundError,
    PayloadTypeNotFoundError,
)
from cdb_rest.domain.moment import Interval, Mode, Moment
from cdb_rest.metrics import counts
from cdb_rest.models import GlobalTag, PayloadList, PayloadType
from cdb_rest.services.copy_out import stream_copy

ROWS = named_sql.load("export_rows")
SETTINGS = named_sql.load("export_settings")
TAKE_SLOT = named_sql.load("take_export_slot")


class Form(StrEnum):
    """The format of an export."""

    CSV = "csv"
    JSONL = "jsonl"


STATEMENTS = {
    Form.CSV: named_sql.load("export_csv").replace("{rows}", ROWS),
    Form.JSONL: named_sql.load("export_jsonl").replace("{rows}", ROWS),
}


@dataclass(frozen=True)
class Selection:
    """What to export: a global tag, one payload type by name or all (None), and a window of moments.

    The export has the IOVs of each payload list that start in the window, and the IOV that is valid at the first moment
    of the window.
    """

    global_tag: str
    payload_type: str | None
    window: Interval


def check_selection(selection: Selection) -> tuple[int, int | None]:
    """The ids of the tag and of the payload type; the latter is None for all types.

    Raises `GlobalTagNotFoundError`, `PayloadTypeNotFoundError`, or `PayloadListNotFoundError` if the tag has no such list.
    """
    tag_id = GlobalTag.objects.filter(name=selection.global_tag).values_list("id", flat=True).first()
    if tag_id is None:
        raise GlobalTagNotFoundError(selection.global_tag)
    if selection.payload_type is None:
        return tag_id, None
    type_id = PayloadType.objects.filter(name=selection.payload_type).values_list("id", flat=True).first()
    if type_id is None:
        raise PayloadTypeNotFoundError(selection.payload_type)
    if not PayloadList.objects.filter(global_tag=tag_id, payload_type=type_id).exists():
        raise PayloadListNotFoundError(f"of type {selection.payload_type} in global tag {selection.global_tag}")
    return tag_id, type_id


def export(selection: Selection, form: Form) -> Generator[bytes]:
    """The selected rows from one snapshot of the database, as chunks of bytes.

    CSV always has at least one chunk, because it begins with a header line; JSONL may have none. Before the first
    chunk, the iterator raises the errors of `check_selection`, and `OverloadedError` if `CDB_MAX_EXPORTS` exports are
    running. With any chunk it may raise `django.db.Error`, for example after `CDB_EXPORT_TIMEOUT_SECONDS`.

    Nothing is done before the first chunk is requested. From then on until the iterator ends or is closed, it has a
    transaction and one of the `CDB_MAX_EXPORTS` slots. So the caller must close it, in the same thread, must not be in
    a transaction, and must not use the connection meanwhile.
    """
    with snapshot():
        tag_id, type_id = check_selection(selection)
        with connection.cursor() as cursor:
            cursor.execute(TAKE_SLOT, {"slots": settings.CDB_MAX_EXPORTS})
            if cursor.fetchone() is None:
                raise OverloadedError(
                    f"The maximum number of exports ({settings.CDB_MAX_EXPORTS}) is already running; try again later."
                )
            cursor.execute(SETTINGS, {"milliseconds": str(settings.CDB_EXPORT_TIMEOUT_SECONDS * 1000)})
        values = _window(selection.window) | {"tag_id": tag_id, "payload_type_id": type_id}
        with counts.EXPORTS.track_inprogress(), stream_copy(STATEMENTS[form], values) as chunks:
            yield from chunks


def _window(window: Interval) -> dict[str, object]:
    since: Moment = window.start
    return {
        "since": since.combined,
        "since_major": since.major,
        "since_minor": since.minor,
        "until": window.end.combined,
        "inclusive": Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE,
    }
