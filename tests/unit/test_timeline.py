"""The interval rule on lists in memory, compared with a function from moments to payloads."""

import contextlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdb_rest.rules.errors import OverlapError
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Mode, Moment
from cdb_rest.rules.timeline import Timeline, TimelineRow

# Every moment of a small world, in order; the last one stands for all that is after it.
WORLD = [Moment(major, minor) for major in range(4) for minor in (0, 1, OPEN)]


def valid(rows, moment):
    """The `iov` of the row with the latest start, if its end is not reached."""
    started = [row for row in rows if row.interval.start <= moment]
    if not started:
        return None
    latest = max(started, key=lambda row: row.interval.start)
    return latest.iov if moment < latest.interval.end else None


def interval(first, last):
    """[first, last) by number of the moment; None as the last is open."""
    return Interval(WORLD[first], AFTER_ALL if last is None else WORLD[last])


class Player:
    """A timeline, the rows it should hold, and the function v by itself."""

    def __init__(self, mode=Mode.CONTINUOUS):
        self.mode = mode
        self.rows = []
        self.settle()
        self.v = dict.fromkeys(WORLD)
        self.starts = set()

    def attach(self, iov, new, since_only=False):
        row = TimelineRow(iov, new)
        cuts = self.timeline.attach(row, since_only=since_only, name=lambda row: row.iov)
        later = [start for start in self.starts if start > new.start]
        until = min(later, default=AFTER_ALL) if since_only else new.end
        covered = [moment for moment in WORLD if new.start <= moment < until]
        if self.running and new.start > self.running and self.is_online(new):
            ended = {self.v[moment] for moment in covered}
            self.v |= {moment: None for moment in WORLD if moment >= until and self.v[moment] in ended}
        self.v |= dict.fromkeys(covered, iov)
        self.rows = list(self.timeline._rows.values())
        self.starts = {row.interval.start for row in self.rows}
        return cuts

    def settle(self, protected=False):
        """A request begins."""
        self.timeline = Timeline(self.rows, protected=protected, mode=self.mode)
        last = max(self.rows, key=lambda row: row.interval.start, default=None)
        self.running = last.interval.start if protected and last and self.is_online(last.interval) else None

    def is_online(self, interval):
        return interval.end == AFTER_ALL or (self.mode == "continuous" and interval.end.minor == OPEN)

    def check(self):
        assert {moment: valid(self.rows, moment) for moment in WORLD} == self.v
        assert not any(row.interval.is_empty for row in self.rows)
        assert sorted(self.starts) == self.timeline._starts and len(self.starts) == len(self.rows)
        ordered = sorted(self.rows, key=lambda row: row.interval.start)
        for row, following in pairwise(ordered):
            assert row.interval.is_open or row.interval.end <= following.interval.start


INTERVALS = st.builds(
    lambda first, length: Interval(WORLD[first], [*WORLD, AFTER_ALL][min(first + length, len(WORLD))]),
    st.integers(0, len(WORLD) - 1),
    st.integers(1, len(WORLD)),
)
STEPS = st.lists(st.tuples(INTERVALS, st.booleans(), st.booleans()), max_size=12)
MODES = st.sampled_from(Mode)


@given(STEPS, MODES)
def test_whatever_is_attached_the_rule_holds(steps, mode):
    player = Player(mode)
    for number, (new, since_only, protected) in enumerate(steps):
        new = Interval(new.start, AFTER_ALL) if since_only else new
        before = dict(player.v)
        player.settle(protected)
        try:
            player.attach(f"iov {number}", new, since_only)
        except OverlapError:
            assert protected and player.v == before
        if protected:
            changed = changed_moments(before, player)
            # Online running alone changes what is defined: from an open one to an open one, to its very end.
            assert not changed or (player.is_online(new) and changed == defined(before, changed[0]))
        player.check()


def changed_moments(before, player):
    return [moment for moment in WORLD if before[moment] not in (None, player.v[moment])]


def defined(v, first):
    return [moment for moment in WORLD if moment >= first and v[moment]]


@given(STEPS, STEPS, MODES)
def test_a_request_to_a_protected_list_keeps_what_was_defined_before_it_in_whatever_order(first, second, mode):
    player = Player(mode)
    for number, (new, since_only, _) in enumerate(first):
        player.attach(f"old {number}", Interval(new.start, AFTER_ALL) if since_only else new, since_only)
    player.settle(protected=True)
    before, ordered = dict(player.v), sorted(player.rows, key=lambda row: row.interval.start)
    online_from = ordered[-1].interval.start if ordered and player.is_online(ordered[-1].interval) else None
    for number, (new, since_only, _) in enumerate(second):
        with contextlib.suppress(OverlapError):
            new = Interval(new.start, AFTER_ALL) if since_only else new
            player.attach(f"new {number}", new, since_only)
    player.check()
    changed = changed_moments(before, player)
    assert all(online_from is not None and moment > online_from for moment in changed)
    # There, only open rows take over.
    assert not changed or changed == defined(before, changed[0])


def test_a_refusal_in_a_protected_list_names_the_row_and_both_intervals():
    player = Player()
    player.attach("gains.root", interval(3, 6))
    player.settle(protected=True)
    with pytest.raises(OverlapError, match=r"\[\(0, 0\), \(1, 1\)\) overlaps \[\(1, 0\), \(2, 0\)\) of gains.root"):
        player.attach("new", interval(0, 4))
    player.check()
