"""The past of a payload list during its stay in a global tag, stored from the logged changes of its IOVs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.domain.moment import Moment
from cdb_rest.domain.replay import PastArea, Replay, Row
from cdb_rest.history.contents import stream_rows
from cdb_rest.models import payload_columns

ADD_PRESENT = payload_columns.load("convert_add_present")
STEPS = named_sql.load("convert_steps")
SHIFT_VERSIONS = named_sql.load("convert_shift_versions")
STORE_AREAS = payload_columns.load("convert_store_areas")
SET_VERSIONS = payload_columns.load("convert_set_versions")
STORE_VERSIONS = named_sql.load("convert_store_versions")

# Areas that one statement stores.
AREAS_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class PastStay:
    """A stay of a payload list, from the change `first` up to `last` (exclusive; None if it lasted beyond the logged changes).

    `stay` is its number in the temporary tables, `versions` how often the list changed after `first`. `version` is the
    list's version after the newest logged change; it counts only if `last` is None. `created` is a time for the IOVs of
    which the log does not have the time.
    """

    stay: int
    list_id: int
    first: int
    last: int | None
    versions: int
    version: int
    created: datetime


def store_stay(stay: PastStay) -> int:
    """Store what was in the list during a stay. Returns the number of areas that were stored. The list must be locked.

    The versions are placed directly below the version of the list after the stay. If the list left the tag, they are
    placed below all versions instead, because the log does not have what happened to the list then.
    """
    # The converted versions follow the version `above`, and the higher ones increase by `by`.
    above = stay.version if stay.last is None else -1
    by = stay.versions if stay.last is None else stay.versions + 1
    shift = {
        "stay": stay.stay,
        "list_id": stay.list_id,
        "above": above,
        "by": by,
        "since": stay.first,
        "last": stay.last,
    }
    if stay.last is None:
        _execute(ADD_PRESENT, {"stay": stay.stay, "list_id": stay.list_id, "version": stay.version})
    _execute(SHIFT_VERSIONS, shift)
    replay, areas = _replay(stay, max(above, 0))
    since = {} if stay.last is not None else replay.versions()
    since = {start: added_in for start, added_in in since.items() if added_in != above}
    _execute(
        SET_VERSIONS,
        shift | {"starts": [start.combined for start in since], "added_ins": list(since.values())},
    )
    return areas


def _replay(stay: PastStay, first_version: int) -> tuple[Replay, int]:
    """Apply the changes of the stay, and store the areas that they end, and the versions from `first_version` on.

    Returns the list after the last change, and the number of areas.
    """
    areas = _Areas(stay)
    replay = Replay([], 0)
    versions: list[tuple[int, int, int]] = []
    for version, (number, removed, added) in enumerate(_changes(stay), first_version):
        if version == first_version:
            replay = Replay(added, version)
        else:
            areas.add(replay.change(removed, added, version))
        if number != stay.last:
            versions.append((number, version, len(replay)))
    areas.store()
    numbers, places, counts = ([row[column] for row in versions] for column in range(3))
    _execute(
        STORE_VERSIONS,
        {
            "list_id": stay.list_id,
            "since": stay.first,
            "last": stay.last,
            "numbers": numbers,
            "versions": places,
            "counts": counts,
        },
    )
    return replay, areas.count


def _changes(stay: PastStay) -> Iterator[tuple[int, list[Row], list[Row]]]:
    """The changes of the list during the stay: number, removed rows, added rows. The first one has what was there."""
    steps = stream_rows(STEPS, {"stay": stay.stay, "since": stay.first})
    begun = False
    for number, rows in groupby(steps, key=itemgetter("number")):
        if not begun and number != stay.first:
            yield stay.first, [], []
        begun = True
        removed: list[Row] = []
        added: list[Row] = []
        for row in rows:
            side = removed if row["leaves"] else added
            side.append((Moment(row["major_iov"], row["minor_iov"]), row["id"]))
        yield number, removed, added
    if not begun:
        yield stay.first, [], []


class _Areas:
    """Areas of the past on their way into the history."""

    def __init__(self, stay: PastStay) -> None:
        self._stay = stay
        self._waiting: list[PastArea] = []
        self.count = 0

    def add(self, areas: list[PastArea]) -> None:
        self._waiting += areas
        if len(self._waiting) >= AREAS_AT_ONCE:
            self.store()

    def store(self) -> None:
        waiting, self._waiting = self._waiting, []
        self.count += len(waiting)
        if waiting:
            _execute(
                STORE_AREAS,
                {
                    "list_id": self._stay.list_id,
                    "created": self._stay.created,
                    "ids": [area.key for area in waiting],
                    "sinces": [area.since and area.since.combined for area in waiting],
                    "untils": [area.until and area.until.combined for area in waiting],
                    "added_ins": [area.added_in for area in waiting],
                    "removed_ins": [area.removed_in for area in waiting],
                },
            )


def _execute(statement: str, values: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
