"""The changes of all global tags in the order of their positions."""

from typing import NamedTuple

from django.db.models import Max, QuerySet

from cdb_rest.models import GlobalTagChange


class Page(NamedTuple):
    """The changes of some writes in the order of their positions; the changes of one write are not separated.

    `cursor` is the position after which the next page begins, and `more` says whether there are further changes now. `lost` says
    that the database has no change at the position after which this page begins: it was restored to an earlier state, or a
    standby without the last changes was promoted. Changes before this page may be gone then, or be repeated.
    """

    changes: QuerySet[GlobalTagChange]
    cursor: int
    more: bool
    lost: bool


def page_after(position: int, writes: int) -> Page:
    """The changes of the next writes after a position, at most so many. Position 0 is before the first change.

    Changes without a position are not among them (`cdb_rest.writes.positions.number_changes`).
    """
    changes = GlobalTagChange.objects.order_by("position", "global_tag")
    positions = (
        changes.filter(position__gte=position).order_by("position").values_list("position", flat=True).distinct()
    )
    found = [one or 0 for one in positions[: writes + 2]]
    lost = bool(position) and found[:1] != [position]
    later = [one for one in found if one > position]
    cursor = position
    if later:
        cursor = later[:writes][-1]
    elif lost:
        # So that the next page is not lost, too.
        cursor = GlobalTagChange.objects.aggregate(Max("position"))["position__max"] or 0
    selected = changes.filter(position__gt=position, position__lte=cursor) if later else changes.none()
    return Page(selected, cursor, len(later) > writes, lost)
