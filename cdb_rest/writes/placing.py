"""Placement of payload IOVs into payload lists by the interval rule.

All writes that add IOVs to a list use it, except those that fill an empty list: clones, scenarios, and imports into
empty lists. The repair of lists uses only `save_rows`.
"""

import copy
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter

from django.conf import settings

from cdb_rest import named_sql
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.models.payload_iov import has_payload, load_statement, payload_of
from cdb_rest.rules.errors import CdbError, OverlapError
from cdb_rest.rules.moment import Interval, Mode, Moment
from cdb_rest.rules.status import Action, check_permitted, is_protected
from cdb_rest.rules.timeline import Cut, Timeline, TimelineRow
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.history import ListChange, next_version, supersede
from cdb_rest.writes.limits import check_closed, check_largest
from cdb_rest.writes.rows import ROWS_NAMED, insert_rows, interval_of, intervals_of, place_rows, set_interval
from cdb_rest.writes.sharing import unshare

NEIGHBOURS = named_sql.load("neighbours")
SHARED_NEIGHBOURS = load_statement("shared_neighbours")
# With fewer rows than this for each range, the whole list is read at less cost than the rows around each range.
ROWS_FOR_A_RANGE = 4


@dataclass(eq=False)
class Placement:
    """An IOV that is to be placed into a payload list. An IOV without an id is new; one with an id is stored.

    With `since_only`, it is valid only up to the next start in the list; its interval must be open. `number` is its row
    number in the request or the import file. `following` is the one with the next start in the same list, if the placements are a
    set. A `Plan` sets the rest:

    - `cuts`: the rows that it cuts.
    - `holder`: the row that makes the same payload valid at its start, if the whole interval has this payload already. Then the
      IOV is not placed.
    """

    iov: PayloadIOV
    payload_list: PayloadList
    since_only: bool = False
    number: int = 0
    following: "Placement | None" = field(default=None, repr=False)
    cuts: list[Cut[TimelineRow[PayloadIOV]]] = field(default_factory=list)
    holder: TimelineRow[PayloadIOV] | None = None

    @cached_property
    def interval(self) -> Interval:
        """The interval of the IOV before a `Plan` is applied."""
        return interval_of(self.iov)


class Plan:
    """The effects of placements, in the order given, on the existing rows of payload lists.

    The caller must have locked the lists, and checked that no interval is empty. The constructor reads the rows, and
    sets the payload list of each placed IOV. It writes nothing.

    `refusals` has the number and the error of each rejected placement. A placement that changes something is rejected if the
    tag is frozen, if it would exceed a limit of the tag or change existing intervals of a protected tag, or if `equal_starts`
    is false and a stored row of its list has the same start. After `ROWS_NAMED` rejections, the rest is not planned. A plan
    with `refusals` must not be applied.

    `word` is what the numbers of placements count, for messages. Without `protecting`, all tags are treated as unprotected.
    With `clearing`, nothing is placed: no payload is valid in the intervals of the placements any more.
    """

    def __init__(
        self,
        placements: Sequence[Placement],
        *,
        equal_starts: bool = True,
        protecting: bool = True,
        clearing: bool = False,
        word: str = "row",
    ) -> None:
        self._placements = placements
        self._equal_starts, self._protecting, self._clearing, self._word = equal_starts, protecting, clearing, word
        self._lists = {placement.payload_list.id: placement.payload_list for placement in placements}
        self._plan()

    def _plan(self) -> None:
        placements = self._placements
        intervals = intervals_of(placement.iov for placement in placements)
        for placement, interval in zip(placements, intervals, strict=True):
            placement.interval = interval
            placement.iov.payload_list = placement.payload_list
        stored = _neighbours(placements)
        self._stored = list(map(TimelineRow, stored, intervals_of(stored)))
        self._new: list[TimelineRow[PayloadIOV]] = []
        self._changed: set[int] = set()
        self._timelines = self._make_timelines(self._protecting)
        self._numbers = {id(placement.iov): placement.number for placement in placements}
        taken = {} if self._equal_starts else {_start(row): row for row in self._stored}
        self.refusals: list[tuple[int, CdbError]] = []
        for placement in placements:
            # The response names no more rows than this, so further planning would be wasted.
            if len(self.refusals) == ROWS_NAMED:
                break
            try:
                if self._clearing:
                    self._clear(placement, placement.interval)
                else:
                    self._attach(placement, TimelineRow(placement.iov, placement.interval), taken)
            except CdbError as error:
                self.refusals.append((placement.number, error))

    def _make_timelines(self, protecting: bool) -> dict[int, Timeline[PayloadIOV]]:
        mode = Mode(settings.CDB_IOV_MODE)
        rows: dict[int, list[TimelineRow[PayloadIOV]]] = {list_id: [] for list_id in self._lists}
        for row in self._stored:
            rows[_list_id(row.iov)].append(row)
        return {
            list_id: Timeline(found, protected=protecting and _is_protected(self._lists[list_id]), mode=mode)
            for list_id, found in rows.items()
        }

    def _attach(
        self,
        placement: Placement,
        row: TimelineRow[PayloadIOV],
        taken: dict[tuple[int, Moment], TimelineRow[PayloadIOV]],
    ) -> None:
        timeline = self._timelines[placement.payload_list.id]
        effective = timeline.effective(row.interval, since_only=placement.since_only)
        placement.holder = timeline.holder(effective, lambda other: has_payload(other.iov, row.iov))
        if placement.holder is not None:
            return
        following = placement.following
        if placement.since_only and following is not None and following.holder is not None:
            start = following.interval.start
            if effective.end > start:
                # The following one, which changed nothing, has to end this one. Then it changes what is valid there.
                self._place(following, TimelineRow(following.iov, following.interval), following.interval, taken)
                effective = Interval(effective.start, start)
        self._place(placement, row, effective, taken)

    def _place(
        self,
        placement: Placement,
        row: TimelineRow[PayloadIOV],
        effective: Interval,
        taken: dict[tuple[int, Moment], TimelineRow[PayloadIOV]],
    ) -> None:
        payload_list = placement.payload_list
        timeline, tag = self._timelines[payload_list.id], payload_list.global_tag

        def is_same(other: TimelineRow[PayloadIOV]) -> bool:
            return has_payload(other.iov, row.iov)

        placement.holder = None
        if tag is not None:
            check_permitted(tag=tag.name, status=tag.status.name, action=Action.ADD_IOV)
            check_largest(tag, row.interval)
            closed = _closed_part(tag, effective)
            if closed is not None and timeline.holder(closed, is_same) is None:
                check_closed(tag, effective.start)
        other = taken.get((payload_list.id, row.interval.start))
        if other is not None:
            raise OverlapError(
                f"{self._name(other)} of {payload_list} starts at the same moment, {row.interval.start}."
            )
        placement.cuts = timeline.attach(row, since_only=placement.since_only, name=self._name)
        self._new.append(row)
        self._changed.add(payload_list.id)

    def _clear(self, placement: Placement, interval: Interval) -> None:
        timeline, tag = self._timelines[placement.payload_list.id], placement.payload_list.global_tag
        if tag is not None and timeline.is_valid_in(interval):
            check_permitted(tag=tag.name, status=tag.status.name, action=Action.REMOVE_IOV)
            closed = _closed_part(tag, interval)
            if closed is not None and timeline.is_valid_in(closed):
                check_closed(tag, interval.start)
        placement.cuts = timeline.clear(interval)
        if placement.cuts:
            self._changed.add(placement.payload_list.id)

    def _name(self, row: TimelineRow[PayloadIOV]) -> str:
        """The name of a row in error messages: its number in the request, or its id."""
        number = self._numbers.get(id(row.iov))
        return f"{f'payload IOV {row.iov.id}' if number is None else f'{self._word} {number}'} ({row.iov.payload_url})"

    @property
    def changes_nothing(self) -> bool:
        """Whether all that is asked for was so before."""
        return not self._changed

    def apply(self, changes: Changes) -> None:
        """Write the plan to the tables and add its changes to `changes`. New IOVs get their ids. Call it only once.

        Lists that share rows get copies of them first. The caller must have removed IOVs that were in other lists from them
        (`remove_row`).
        """
        if unshare([self._lists[list_id] for list_id in self._changed]):
            # The plan is about the shared rows; the copies have other ids.
            self._plan()
        rests = [row for timeline in self._timelines.values() for row in timeline.rows() if row.is_rest]
        for row in rests:
            row.iov = _copy(row.iov)
        stored: dict[int, list[TimelineRow[PayloadIOV]]] = {list_id: [] for list_id in self._lists}
        for row in self._stored:
            stored[_list_id(row.iov)].append(row)
        changed = _supersede(
            [(self._lists[list_id], stored[list_id], self._timelines[list_id].rows()) for list_id in self._changed],
            changes,
        )
        for row in [*self._new, *rests]:
            _set_columns(row, next_version(self._lists[_list_id(row.iov)]))
        created = [row.iov for row in [*self._new, *rests] if row.iov.id is None]
        moved = [row.iov for row in self._new if row.iov.id is not None]
        # In this order, the unique constraint on the starts of a list is satisfied after every statement.
        place_rows(changed)
        place_rows(moved)
        insert_rows(created)


def _closed_part(tag: GlobalTag, interval: Interval) -> Interval | None:
    """The part of an interval before `closed_until` of the tag; None if there is none."""
    if tag.closed is None or interval.start >= tag.closed:
        return None
    return Interval(interval.start, min(interval.end, tag.closed))


def _is_protected(payload_list: PayloadList) -> bool:
    tag = payload_list.global_tag
    return tag is not None and is_protected(tag.status.name)


def save_rows(payload_list: PayloadList, rows: Sequence[TimelineRow[PayloadIOV]], changes: Changes) -> None:
    """Update the stored rows of a list with their current intervals, or detach them. Adds the changes to `changes`.

    `rows` are all rows of the list. Their IOVs must still have the stored values, and `was` must be the stored interval; the
    columns are set here.
    """
    place_rows(_supersede([(payload_list, rows, [row for row in rows if row.attached])], changes))


def remove_row(payload_list: PayloadList, iov: PayloadIOV, changes: Changes) -> None:
    """Note in `changes` that a stored `iov` leaves the list. The caller must delete or move it afterwards."""
    rows = [
        TimelineRow(item, interval_of(item)) for item in _neighbours([Placement(iov, payload_list, since_only=True)])
    ]
    place_rows(_supersede([(payload_list, rows, [row for row in rows if row.iov.id != iov.id])], changes))


# Rows of a list.
Rows = Sequence[TimelineRow[PayloadIOV]]


def _supersede(parts: Sequence[tuple[PayloadList, Rows, Rows]], changes: Changes) -> list[PayloadIOV]:
    """Store in the history what is superseded. Returns the stored IOVs that must be saved, with their new values.

    `parts` has, for each list, stored rows, whose IOVs still have the stored values, and the attached rows afterwards.
    """
    list_changes: list[ListChange] = []
    to_save: list[tuple[TimelineRow[PayloadIOV], int]] = []
    for payload_list, stored, now in parts:
        before = sorted(((row.was.start, row.iov) for row in stored), key=itemgetter(0))
        changed = [row for row in stored if not row.attached or row.interval != row.was]
        for row in changed:
            row.iov = copy.copy(row.iov)
        after = sorted(((row.interval.start, row.iov) for row in now), key=itemgetter(0))
        list_changes.append(ListChange(payload_list, before, after))
        to_save += ((row, next_version(payload_list)) for row in changed)
    grown = supersede(list_changes, changes)
    for row, version in to_save:
        _set_columns(row, version)
    return [*(row.iov for row, _ in to_save), *grown]


def _set_columns(row: TimelineRow[PayloadIOV], version: int) -> None:
    if row.is_rest or row.interval != row.was:
        set_interval(row.iov, row.interval)
    row.iov.added_in = version
    if not row.attached:
        row.iov.payload_list = None
        row.iov.added_in = 0


def _start(row: TimelineRow[PayloadIOV]) -> tuple[int, Moment]:
    return _list_id(row.iov), row.interval.start


def _list_id(iov: PayloadIOV) -> int:
    """The id of the payload list of an attached IOV."""
    if iov.payload_list_id is None:
        raise AssertionError(f"payload IOV {iov.id} is in no payload list")
    return iov.payload_list_id


def _neighbours(placements: Sequence[Placement]) -> list[PayloadIOV]:
    """The stored IOVs that the placements may affect, from one statement."""
    shared = {item.payload_list.id for item in placements if item.payload_list.base_list_id is not None}
    ranges = list(_ranges(placements))
    found: list[PayloadIOV] = []
    for statement, part in (
        (NEIGHBOURS, [item for item in ranges if item[0] not in shared]),
        (SHARED_NEIGHBOURS, [item for item in ranges if item[0] in shared]),
    ):
        if part:
            list_ids, firsts, lasts = zip(*part, strict=True)
            starts = {"firsts": [one.combined for one in firsts], "lasts": [one.combined for one in lasts]}
            found += PayloadIOV.objects.raw(statement, {"list_ids": list(list_ids)} | starts)
    return found


def _ranges(placements: Sequence[Placement]) -> Iterator[tuple[int, Moment, Moment]]:
    """The ranges of moments that the placements cover, merged so that they do not overlap: list id, first, last."""
    by_list: dict[int, list[tuple[Moment, Moment]]] = defaultdict(list)
    sizes = {}
    # Those that follow are placements, too, except that of the last one of a batch.
    ends = [one.following for one in placements[:1] if one.following is not None]
    for placement in [*ends, *placements]:
        interval = placement.interval
        sizes[placement.payload_list.id] = placement.payload_list.iov_count
        by_list[placement.payload_list.id].append(
            (interval.start, interval.start if placement.since_only else interval.end)
        )
    for list_id, found in by_list.items():
        found.sort()
        if len(found) * ROWS_FOR_A_RANGE > sizes[list_id]:
            found = [(found[0][0], max(last for _, last in found))]
        first, last = found[0]
        for start, end in found:
            if start > last:
                yield list_id, first, last
                first = start
            last = max(last, end)
        yield list_id, first, last


def _copy(iov: PayloadIOV) -> PayloadIOV:
    """A new row with the same payload and list, for the second part of a split row."""
    return PayloadIOV(payload_list_id=iov.payload_list_id, creator=iov.creator, **payload_of(iov))
