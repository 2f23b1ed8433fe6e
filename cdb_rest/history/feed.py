"""The changes of all global tags in the order of their positions."""

from django.db.models import QuerySet

from cdb_rest.models import GlobalTagChange


def changes_after(position: int, writes: int) -> QuerySet[GlobalTagChange]:
    """The changes of the next writes after a position, at most so many, in their order. Those of one write are not separated.

    Changes without a position are not among them (`cdb_rest.writes.positions.number_changes`).
    """
    later = GlobalTagChange.objects.filter(position__gt=position)
    positions = list(later.order_by("position").values_list("position", flat=True).distinct()[:writes])
    last = positions[-1] if positions else position
    return later.filter(position__lte=last).order_by("position", "id")
