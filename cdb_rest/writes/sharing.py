"""Payload lists that share the rows of another list, and their first write, before which they get copies of these rows."""

from collections.abc import Collection

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.history.contents import iovs_of, present_lists
from cdb_rest.models import PayloadIOV, PayloadList
from cdb_rest.models.payload_iov import load_statement
from cdb_rest.models.payload_list import PRESENT

UNSHARE = load_statement("unshare")
IS_SHARED = named_sql.load("is_shared")


def unshare(lists: Collection[PayloadList]) -> bool:
    """Give those of the lists that share rows of another list copies of them. Returns whether there were such lists.

    A list has the same contents afterwards, under other ids. The lists must be locked; the objects are updated.
    """
    shared = [item for item in lists if item.base_list_id is not None]
    if shared:
        with connection.cursor() as cursor:
            cursor.execute(UNSHARE, {"list_ids": [item.id for item in shared]})
    for item in shared:
        item.base_list_id = item.base_version = None
        item.rows_list_id, item.rows_version = item.id, PRESENT
    return bool(shared)


def is_shared(iov: PayloadIOV) -> bool:
    """Whether other payload lists, or versions of them, share an attached IOV."""
    with connection.cursor() as cursor:
        cursor.execute(IS_SHARED, {"list_id": iov.payload_list_id, "added_in": iov.added_in})
        return cursor.fetchone() is not None


def shares(payload_list: PayloadList, iov: PayloadIOV) -> bool:
    """Whether a list shares a stored IOV that is attached to its base."""
    version = payload_list.base_version
    return version is not None and payload_list.base_list_id == iov.payload_list_id and iov.added_in <= version


def stored_rows(payload_list: PayloadList) -> list[PayloadIOV]:
    """The rows of a list, by start; those that it shares as objects that are not stored."""
    if payload_list.base_list_id is None:
        return list(PayloadIOV.objects.filter(payload_list=payload_list).order_by("comb_iov"))
    [found] = present_lists(PayloadList.objects.filter(id=payload_list.id))
    return [PayloadIOV(**columns) for columns in iovs_of([found])]
