"""Changes of a payload list, applied forward in time, with what each of them supersedes."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from cdb_rest.domain.history import superseded_areas
from cdb_rest.domain.moment import Moment

# Up to this number of rows, single insertions are faster than sorting.
FEW_ROWS = 50

# A row of a list: its start and its key.
Row = tuple[Moment, int]


@dataclass(frozen=True, slots=True)
class PastArea:
    """An area that a row had in the versions `added_in` up to `removed_in`, which is exclusive.

    The other attributes are those of `cdb_rest.domain.history.Superseded`.
    """

    key: int
    since: Moment | None
    until: Moment | None
    added_in: int
    removed_in: int


class Replay:
    """A payload list whose changes are applied one after the other. No two of its rows may have the same start."""

    def __init__(self, rows: Sequence[Row], version: int) -> None:
        self._rows = dict(rows)
        self._starts = sorted(self._rows)
        self._added_in = dict.fromkeys(self._rows.values(), version)

    def __len__(self) -> int:
        return len(self._rows)

    def change(self, removed: Sequence[Row], added: Sequence[Row], version: int) -> list[PastArea]:
        """Remove rows and add others, which creates this version. Returns the areas that end with it."""
        gone = {start for start, _ in removed}
        near = self._neighbours(gone, added)
        areas, grown = superseded_areas(sorted([*near, *removed]), sorted([*near, *added]))
        past = [PastArea(area.key, area.since, area.until, self._added_in[area.key], version) for area in areas]
        for start, key in removed:
            del self._rows[start], self._added_in[key]
        for start, key in added:
            self._rows[start], self._added_in[key] = key, version
        self._added_in.update(dict.fromkeys(grown, version))
        self._sort(gone, added)
        return past

    def versions(self) -> dict[Moment, int]:
        """The version since which each row is as it is, by the start of the row."""
        return {start: self._added_in[key] for start, key in self._rows.items()}

    def _neighbours(self, gone: set[Moment], added: Sequence[Row]) -> set[Row]:
        """The rows that stay, and have a removed or added row next to them."""
        near = set()
        for start in chain(gone, (start for start, _ in added)):
            position = bisect_left(self._starts, start)
            after = position + (start in gone)
            for found in self._starts[max(position - 1, 0) : position] + self._starts[after : after + 1]:
                if found not in gone:
                    near.add((found, self._rows[found]))
        return near

    def _sort(self, gone: set[Moment], added: Sequence[Row]) -> None:
        if len(gone) + len(added) > FEW_ROWS:
            self._starts = sorted(self._rows)
            return
        for start in gone:
            del self._starts[bisect_left(self._starts, start)]
        for start, _ in added:
            insort(self._starts, start)
