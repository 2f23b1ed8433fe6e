"""A database as versions without a history of rows left it, made from one with a history."""

from pathlib import Path

import orjson
from django.db import connection, transaction

from cdb_rest import migrations
from cdb_rest.history.changes import read_change
from cdb_rest.models import (
    DeletedGlobalTag,
    GlobalTagChange,
    PayloadIOV,
    PayloadIOVHistory,
    PayloadList,
    PayloadListMembership,
    PayloadListVersion,
)

FROZEN = Path(migrations.__file__).parent / "0005_history"


def documents(change):
    """The documents of a change with all of its IOVs."""
    with transaction.atomic():
        before, after, groups = read_change(change)
        for side, rows in groups:
            (before if side == "before" else after)["payload_iovs"] = list(rows)
    return before, after


def as_logged(change, before, after):
    """The documents as the earlier versions logged them."""
    if "clone_of" in after or "scenario" in after:
        after = {name: value for name, value in after.items() if name != "payload_iovs"}
    if change.action == "delete":
        before = {name: value for name, value in before.items() if name == "status"}
    return before, after


@transaction.atomic
def forget_history():
    """Write the documents of all changes, drop the history, and do what the migration does. Returns the whole documents."""
    whole = {}
    for change in GlobalTagChange.objects.order_by("id"):
        whole[change.id] = documents(change)
    for change in GlobalTagChange.objects.order_by("id"):
        before, after = as_logged(change, *whole[change.id])
        # The earlier versions did not count the IOVs of a clone.
        uncounted = {"payload_iovs_after": 0} if "clone_of" in after else {}
        GlobalTagChange.objects.filter(id=change.id).update(
            **uncounted,
            logged_before=orjson.loads(orjson.dumps(before)),
            logged_after=orjson.loads(orjson.dumps(after)),
        )
    for model in (PayloadIOVHistory, PayloadListVersion, PayloadListMembership, DeletedGlobalTag):
        model.objects.all().delete()
    PayloadIOV.objects.update(added_in=0)
    PayloadList.objects.update(version=0)
    migrate()
    return whole


def migrate():
    """What the migration does with the data."""
    GlobalTagChange.objects.update(tag_id=None, status="", source=None)
    with connection.cursor() as cursor:
        cursor.execute('UPDATE "GlobalTagChange" SET number = id, has_history = false')
        cursor.execute(
            "SELECT setval('cdb_change_number', greatest(nextval('cdb_change_number'), max(number))) FROM \"GlobalTagChange\""
        )
        cursor.execute((FROZEN / "present_state.sql").read_text())
