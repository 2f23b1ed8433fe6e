"""Repairing the rows of a list changes no result of a lookup."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cdb_rest.maintenance.repair import repair_rows
from cdb_rest.rules.moment import AFTER_ALL, Interval, Moment
from cdb_rest.rules.timeline import TimelineRow
from tests.unit.naive import valid

WORLD = [Moment(0, minor) for minor in range(10)]
NUMBER = st.integers(0, 9)
# Ends before starts too: a database without its constraints has them.
ROWS = st.lists(st.tuples(NUMBER, st.one_of(NUMBER, st.none())), max_size=8)


@given(ROWS, st.booleans())
def test_lists_are_put_in_order_and_answer_as_before(columns, with_equal_starts):
    columns.sort(key=lambda one: one[0])
    if not with_equal_starts:
        columns = list(dict(columns).items())
    rows = [
        TimelineRow(number, Interval(WORLD[start], AFTER_ALL if end is None else WORLD[end]))
        for number, (start, end) in enumerate(columns)
    ]
    before = {moment: valid(rows, moment) for moment in WORLD}
    was = [row.interval for row in rows]
    changed = repair_rows(rows)
    left = [row for row in rows if row.attached]
    assert not any(row.interval.is_empty for row in left)
    for row, following in pairwise(left):
        assert row.interval.start < following.interval.start
        assert row.interval.is_open or row.interval.end <= following.interval.start
    assert {row.iov for row in changed} == {row.iov for row in rows if not row.attached or row.interval != was[row.iov]}
    if not with_equal_starts:
        assert {moment: valid(left, moment) for moment in WORLD} == before


def test_of_rows_with_one_start_the_last_that_is_not_empty_stays():
    rows = [
        TimelineRow(number, Interval(WORLD[2], end))
        for number, end in enumerate([WORLD[5], WORLD[4], WORLD[2], WORLD[1]])
    ]
    repair_rows(rows)
    assert [row.iov for row in rows if row.attached] == [1]
