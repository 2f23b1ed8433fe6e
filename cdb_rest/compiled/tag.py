"""Lookups in a state of a tag from packs: the row of each payload list at a moment, and the window of the response."""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from cdb_rest.compiled.pack import Pack
from cdb_rest.compiled.state import ListKey, TagState
from cdb_rest.rules.intervals import Integers, joined
from cdb_rest.rules.moment import Interval, Mode, Moment, window_between

# The elements of a row's JSON array, as they are written.
ELEMENT = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+|null')
ELEMENTS = 9
# As json_build_object writes it.
OBJECT = (
    b'{"payload_type_name" : %b, "payload_url" : %b, "checksum" : %b, "size" : %b, "major_iov" : %b, "minor_iov" : %b, '
    b'"major_iov_end" : %b, "minor_iov_end" : %b, "revision" : %b}'
)


def as_object(row: bytes) -> bytes:
    """A row of a lookup's response as a JSON object, from the same row as a JSON array, byte for byte as PostgreSQL writes it."""
    elements = row[1:-1].split(b", ")
    if len(elements) != ELEMENTS:
        # A text contains the separator.
        elements = ELEMENT.findall(row)
    return OBJECT % tuple(elements)


class Query(NamedTuple):
    """What a lookup asks for (`cdb_rest.lookup.model.LookupQuery`)."""

    moment: Moment
    only_valid: bool
    as_objects: bool
    mode: Mode


# The interval in which some rows are the same: since and until; None: from the beginning, to the end of time.
Edges = tuple[Moment | None, Moment | None]


class Part:
    """The lists of a tag that are answered from one pack. `ranks` are their places in a response, in ascending order."""

    def __init__(self, pack: Pack, ranks: list[int], keys: list[ListKey]) -> None:
        self.pack = pack
        self._ranks = np.array(ranks)
        self._positions = np.array([pack.positions[key] for key in keys])
        self._first, self._end = pack.first[self._positions], pack.first[self._positions + 1]
        self._last = self._first - 1

    def found(self, moment: Moment) -> Integers:
        """For each list, the number of the row with the latest start at or before the moment; before its first row, if none."""
        found: Integers = self._last + self.pack.starts_until(moment).take(self._positions)
        return found

    def rows(self, found: Integers, query: Query) -> tuple[Integers, list[bytes]]:
        """The ranks of the lists that have a row, and these rows. `found` is the result of the method `found`."""
        chosen = np.flatnonzero(found > self._last)
        numbers = found.take(chosen)
        if query.only_valid:
            are_valid = self.pack.intervals(numbers, query.mode).end_after(query.moment)
            chosen, numbers = chosen[are_valid], numbers[are_valid]
        rows = self.pack.texts(numbers)
        return self._ranks.take(chosen), [as_object(row) for row in rows] if query.as_objects else rows

    def window(self, found: Integers, query: Query) -> Edges:
        """The largest interval around the moment in which the rows are the same, as the SQL function cdb_window."""
        pack, first, end = self.pack, self._first, self._end
        found, upcoming = found.copy(), found + 1
        if query.only_valid and query.mode is Mode.CONTINUOUS:
            # Empty rows hide what was in force and bring nothing themselves.
            self._skip_empty(found, -1)
            self._skip_empty(upcoming, 1)
        has_found, has_upcoming = found >= first, upcoming < end
        current = pack.intervals(found[has_found], query.mode)
        later = pack.starts(upcoming[has_upcoming])
        if not query.only_valid:
            return (current.starts.latest(), later.earliest())
        following = (found + 1)[has_found]
        before_last = np.flatnonzero(following < end[has_found])
        current = current.cut(before_last, pack.starts(following[before_last]))
        last = current.end_after(query.moment)
        since = joined([current.starts[last], current.ends[~last]])
        # Where nothing is in force, the response holds until the next row.
        is_waiting = ~has_found
        is_waiting[has_found] = ~last
        until = joined([current.ends[last & ~current.are_open], later[is_waiting[has_upcoming]]])
        return (since.latest(), until.earliest())

    def _skip_empty(self, numbers: Integers, step: int) -> None:
        """Move the numbers of rows that are empty by `step` until they are not, or until they are outside of their lists."""
        moved = np.arange(len(numbers))
        while len(moved := moved[(numbers >= self._first)[moved] & (numbers < self._end)[moved]]):
            moved = moved[self.pack.intervals(numbers[moved], Mode.CONTINUOUS).are_empty()]
            numbers[moved] += step


class CompiledTag:
    """A state of a tag, of which packs have all or some lists. Threads may share it."""

    def __init__(self, state: TagState, packs: Collection[Pack]) -> None:
        self.state = state
        self.packs = packs
        self.parts: list[Part] = []
        missing = {key: rank for rank, key in enumerate(state.keys)}
        # Those with most of the lists first, so that the lists come from few packs.
        shared = {
            pack: len(pack.positions.keys() & missing.keys()) for pack in packs if pack.database == state.database
        }
        for pack in sorted(shared, key=shared.__getitem__, reverse=True):
            if keys := [key for key in missing if key in pack.positions]:
                self.parts.append(Part(pack, [missing.pop(key) for key in keys], keys))
        # The ranks of the lists that no pack has.
        self.missing = list(missing.values())
        self.missing_ids = [state.ids[rank] for rank in self.missing]
        self._ranks = {key.payload_type: rank for key, rank in missing.items()}

    def is_intact(self) -> bool:
        """Whether the files of the packs are as they were when they were opened."""
        return all(part.pack.is_intact() for part in self.parts)

    def look_up(
        self,
        query: Query,
        others: Sequence[tuple[str, bytes]] = (),
        edges: Edges = (None, None),
        *,
        with_window: bool,
    ) -> tuple[bytes, Interval | None]:
        """The body of a response, and its window if it is asked for.

        `others` are rows of the missing lists with their payload types, and `edges` their window.
        """
        found = [part.found(query.moment) for part in self.parts]
        pairs = [part.rows(numbers, query) for part, numbers in zip(self.parts, found, strict=True)]
        rows = [row for _, part in pairs for row in part] + [row for _, row in others]
        if len(self.parts) > 1 or others:
            missing = np.array([self._ranks[name] for name, _ in others], np.int64)
            ranks = np.concatenate([*(part for part, _ in pairs), missing])
            rows = [rows[place] for place in np.argsort(ranks).tolist()]
        body = b"[" + b",".join(rows) + b"]"
        if not with_window:
            return body, None
        all_edges = [edges, *(part.window(numbers, query) for part, numbers in zip(self.parts, found, strict=True))]
        return body, window_between(
            max((since for since, _ in all_edges if since is not None), default=None),
            min((until for _, until in all_edges if until is not None), default=None),
        )
