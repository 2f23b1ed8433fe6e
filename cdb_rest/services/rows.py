"""Statements that store rows of payload lists: many payload IOVs at once. They keep neither the interval rule nor the history."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.models import PayloadIOV, payload_columns

PLACE = named_sql.load("place_payload_iovs")
NEXT_IDS = named_sql.load("next_payload_iov_ids")
INSERT = payload_columns.load("insert_payload_iovs")


def place_rows(iovs: Sequence[PayloadIOV]) -> None:
    """Store the list, the interval and `added_in` of stored IOVs.

    The index on the starts of a list must hold after each row: a start must be free before another IOV gets it.
    """
    if iovs:
        with connection.cursor() as cursor:
            cursor.execute(PLACE, {"ids": [iov.id for iov in iovs]} | _places(iovs))


def insert_rows(iovs: Sequence[PayloadIOV]) -> None:
    """Insert IOVs. Those without an id get a new one."""
    if not iovs:
        return
    without_id = [iov for iov in iovs if iov.id is None]
    with connection.cursor() as cursor:
        cursor.execute(NEXT_IDS, {"count": len(without_id)})
        for iov, (iov_id,) in zip(without_id, cursor.fetchall(), strict=True):
            iov.id = iov_id
        ids = [iov.id for iov in iovs]
        cursor.execute(INSERT, {"ids": ids} | _places(iovs) | payload_columns.payload_arrays(iovs))


def _places(iovs: Sequence[PayloadIOV]) -> dict[str, list[Any]]:
    return {
        "payload_list_ids": [iov.payload_list_id for iov in iovs],
        "major_iovs": [iov.major_iov for iov in iovs],
        "minor_iovs": [iov.minor_iov for iov in iovs],
        "major_iov_ends": [iov.major_iov_end for iov in iovs],
        "minor_iov_ends": [iov.minor_iov_end for iov in iovs],
        "added_ins": [iov.added_in for iov in iovs],
    }
