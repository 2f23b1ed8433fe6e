"""The payload columns in SQL statements and documents that copy whole payload IOVs."""

import re
from typing import Any, cast

from django.db import connection, models

from cdb_rest import named_sql
from cdb_rest.models.payload_iov import PAYLOAD_COLUMNS, PayloadIOV

PLACEHOLDER = re.compile(r"\{[a-z._]+\}")


def load(name: str) -> str:
    """The statement with that name in ``sql/``, with its placeholders replaced by lists of the payload columns.

    Raises `ValueError` for an unknown placeholder.
    """
    columns = PAYLOAD_COLUMNS.values()
    lists = {
        "{payload}": columns,
        "{iov.payload}": [f"iov.{column}" for column in columns],
        "{iov.payload_if_whole}": [f"CASE WHEN area.since IS NULL THEN iov.{column} END" for column in columns],
        "{payload_arrays}": [f"%({column})s::{_type_of(column)}[]" for column in columns],
    }
    text = named_sql.load(name)
    for placeholder, parts in lists.items():
        text = text.replace(placeholder, ", ".join(parts))
    if left := PLACEHOLDER.search(text):
        raise ValueError(f"the statement {name} has an unknown placeholder {left[0]}")
    return text


def payload_of(iov: PayloadIOV) -> dict[str, Any]:
    """The values of an IOV's payload columns, by column name."""
    return {column: getattr(iov, column) for column in PAYLOAD_COLUMNS.values()}


def _type_of(column: str) -> str:
    field = cast("models.Field[Any, Any]", PayloadIOV._meta.get_field(column))
    return "text" if isinstance(field, models.CharField | models.TextField) else str(field.db_type(connection))
