"""Where the rows of payload lists really end: at their stored end, or at the next start in the list if that is earlier."""

from collections.abc import Sequence
from typing import NamedTuple

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.rules.moment import AFTER_ALL, Moment

NEXT_STARTS = named_sql.load("next_starts_of_lists")


class Place(NamedTuple):
    """A moment in a payload list, by the list's id; `number` is that of a change for the state after it, None for the present."""

    list_id: int
    number: int | None
    moment: Moment


def next_starts(places: Sequence[Place]) -> list[Moment]:
    """For each place the next start in the list, `AFTER_ALL` if there is none. One query. Raises `django.db.Error`."""
    parameters = {
        "lists": [place.list_id for place in places],
        "numbers": [place.number for place in places],
        "moments": [place.moment.combined for place in places],
    }
    rows = fetch_all(NEXT_STARTS, parameters) if places else []
    return [AFTER_ALL if start is None else Moment.from_combined(start) for (start,) in rows]
