"""The uses of a payload: global tags, payload lists and intervals of validity, in the present and in the past."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.history.contents import stream_rows

ROWS = named_sql.load("uses")
SETTINGS = named_sql.load("uses_settings")


@dataclass(frozen=True, slots=True)
class Payload:
    """Which payloads are meant: those with this URL, with this prefix of the URL, or with this checksum."""

    url: str | None = None
    url_prefix: str | None = None
    checksum: str | None = None


def uses(payload: Payload, *, with_removed: bool) -> Iterator[dict[str, Any]]:
    """The uses of the payloads by columns (`uses` (sql/analysis.sql)), with those of the past if `with_removed`.

    They are read with a server-side cursor; the caller must be in a transaction. Raises `django.db.Error`.
    """
    prefix = payload.url_prefix
    parameters = {
        "payload_url": payload.url,
        "url_pattern": None if prefix is None else f"{escaped(prefix)}%",
        "checksum": payload.checksum,
        "with_removed": with_removed,
    }
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS)
    return stream_rows(ROWS, parameters)


def escaped(text: str) -> str:
    """The text as part of a pattern for LIKE."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
