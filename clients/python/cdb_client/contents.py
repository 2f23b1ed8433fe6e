"""What is known of one version of a global tag: the rows of its lookups, in stretches of moments."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cdb_client.moments import AFTER_ALL, FIRST, OPEN, Moment
from cdb_client.sources import Row

# A stretch that is read ahead is so many times as long as the longest known one, unless it would have more than so many rows.
GROWTH, ROWS_AHEAD = 16, 50_000


@dataclass(frozen=True)
class Stretch:
    """All rows that lookups return at the moments from `since` (inclusive) to `until` (exclusive).

    `base` are the rows of the lookup at `since`, and `changes` those that start later, ordered by payload type, then by start.
    `changes` may also have rows of `base` again.
    """

    since: Moment
    until: Moment
    base: Sequence[Row]
    changes: Sequence[Row] = ()
    # `base` as JSON, if it has come as JSON.
    body: bytes = field(default=b"", repr=False, compare=False)

    @cached_property
    def base_by_type(self) -> Mapping[str, Row]:
        """For each payload type its row of `base`."""
        return {row[0]: row for row in self.base}

    @cached_property
    def changes_by_type(self) -> Mapping[str, tuple[list[tuple[int, int]], list[Row]]]:
        """For each payload type the starts of its rows of `changes`, and the rows."""
        found: dict[str, tuple[list[tuple[int, int]], list[Row]]] = {}
        for row in self.changes:
            starts, rows = found.setdefault(row[0], ([], []))
            starts.append((row[4], row[5]))
            rows.append(row)
        return found

    @cached_property
    def minors(self) -> int:
        """The largest minor number at which a row starts, plus one."""
        return 1 + max((row[5] for rows in (self.base, self.changes) for row in rows), default=0)

    def rows_at(self, moment: Moment) -> Mapping[str, Row]:
        """The row of each payload type at a moment of the stretch."""
        return _Rows(self, moment)


@dataclass(slots=True, eq=False)
class _Rows(Mapping[str, Row]):
    """The rows at a moment, which are found when they are asked for."""

    _stretch: Stretch
    _moment: Moment

    def __getitem__(self, payload_type: str) -> Row:
        changes = self._stretch.changes_by_type.get(payload_type)
        if changes and (place := bisect_right(changes[0], self._moment)):
            return changes[1][place - 1]
        return self._stretch.base_by_type[payload_type]

    def __iter__(self) -> Iterator[str]:
        names = self._stretch.base_by_type.keys() | self._stretch.changes_by_type.keys()
        return (name for name in names if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass
class State:
    """A version of a tag, now or in the past, and the stretches that are known of it.

    They do not overlap. Several threads may read them while one adds to them.
    """

    version: str
    revision: int
    mode: str
    is_immutable: bool
    # The moment of a lookup and its ETag, with which the service is asked whether the version is the present one.
    moment: Moment
    etag: str
    # When it was the present one, in seconds since 1970.
    checked: float
    _index: tuple[list[Moment], list[Stretch]] = field(default=([], []), repr=False)

    def at(self, moment: Moment) -> Stretch | None:
        """The stretch with this moment."""
        found = self.reaching(moment)
        return found if found and moment < found.until else None

    def reaching(self, moment: Moment) -> Stretch | None:
        """The stretch with this moment, or that ends at it. Its rows at the moment are known, too."""
        starts, stretches = self._index
        place = bisect_right(starts, moment)
        return stretches[place - 1] if place and moment <= stretches[place - 1].until else None

    def add(self, new: Stretch) -> None:
        """Add a stretch; others lose what they have in common with it."""
        kept = [new]
        for old in self._index[1]:
            if old.since < new.since:
                kept.append(replace(old, until=min(old.until, new.since)))
            if old.until > new.until:
                # Rows that are valid at its start are still found, because they are found by their own starts.
                kept.append(replace(old, since=max(old.since, new.until)))
        kept.sort(key=lambda stretch: stretch.since)
        self._index = ([stretch.since for stretch in kept], kept)

    def ahead(self, moment: Moment) -> tuple[Moment, Moment] | None:
        """The stretch to read around a moment that is not known, up to known ones; None if too little is known."""
        starts, stretches = self._index
        ending = [stretch for stretch in stretches if stretch.until < OPEN]
        if not ending:
            return None
        # Lengths are counted in moments whose minor numbers are below this one.
        minors = max(moment.minor + 1, *(stretch.minors for stretch in ending))

        def number(of: Moment) -> int:
            return of.major * minors + min(of.minor, minors - 1)

        def moment_of(number: int) -> Moment:
            return min(Moment(*divmod(max(number, 0), minors)), AFTER_ALL)

        lengths = [number(stretch.until) - number(stretch.since) + 1 for stretch in ending]
        rows = 1 + sum(len(stretch.changes) for stretch in ending)
        length = min(GROWTH * max(lengths), ROWS_AHEAD * sum(lengths) // rows) + 2
        place = bisect_right(starts, moment)
        low, high = (stretches[place - 1].until if place else FIRST), (starts[place] if starts[place:] else AFTER_ALL)
        start = max(low, moment_of(number(moment) - length // 2))
        end = min(high, moment_of(number(start) + length))
        return max(low, min(start, moment_of(number(end) - length))), end
