"""The positions of changes: the order in which programs read the changes of all tags."""

from django.db import connection
from django.db.models import Max

from cdb_rest import named_sql
from cdb_rest.models import GlobalTagChange
from cdb_rest.writes.transactions import write

LOCK = named_sql.load("lock_positions")
NUMBER = named_sql.load("number_changes")
# One statement of a request may take some seconds only, and a service that is upgraded may have millions of changes.
NUMBERED_AT_ONCE = 10_000


def number_changes() -> int:
    """Give a position to each committed change that has none yet, and return the newest position, 0 without changes.

    A change that is committed later gets a later position, so readers in the order of positions miss none. Raises the
    errors of `write`.
    """
    if GlobalTagChange.objects.filter(position=None).exists():
        while _number() >= NUMBERED_AT_ONCE:
            pass
    newest: int | None = GlobalTagChange.objects.aggregate(Max("position"))["position__max"]
    return newest or 0


@write
def _number() -> int:
    with connection.cursor() as cursor:
        cursor.execute(LOCK)
        cursor.execute(NUMBER, {"most": NUMBERED_AT_ONCE})
        numbered: int = cursor.rowcount
    return numbered
